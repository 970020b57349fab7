// `lazarus/critic`: the two-tier watchdog of runs.
export { type CriticOptions, type CriticProgress, createCritic } from "./critic.ts";
export {
  type CriticLimits,
  type CriticMove,
  type CriticState,
  decideMove,
  type Escalation,
  soundEscalation,
} from "./decide.ts";
