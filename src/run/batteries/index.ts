// `lazarus/batteries`: audit log, budgets, personas and skills. All optional; the kernel imports none of them.
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
