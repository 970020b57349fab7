// Batteries that the kernel knows nothing of: audit, budget, personas, skills. Each is optional and does nothing by itself.
export { type AuditEntry, type AuditLog, openAuditLog } from "./audit.ts";
export {
  type BudgetLimits,
  createBudget,
  createMemorySpendings,
  judgeBudget,
  type Spending,
  type SpendingStore,
} from "./budget.ts";
export { loadPersona, loadPersonas, type Persona } from "./persona.ts";
export { loadSkills, type Skill, type SkillSet } from "./skill.ts";
