// Copies a database that another program owns, without the rows of some tables, which are not even left in free pages. The
// copy gets its name when it is complete.
import { rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { Machine } from "../../platform/machine.ts";
import { readDatabase } from "../../platform/sqlite.ts";

/** False when there is nothing to copy. */
export function copyDatabaseWithout(
  { disk }: Pick<Machine, "disk">,
  from: string,
  to: string,
  emptied: readonly string[],
): boolean {
  const temporary = `${to}.copy`;
  rmSync(temporary, { force: true });
  const copied = readDatabase(from, (database) => database.prepare("VACUUM INTO ?").run(temporary));
  if (copied === undefined) return false;
  const database = new DatabaseSync(temporary);
  try {
    const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all();
    database.exec("PRAGMA secure_delete = ON");
    for (const { name } of tables)
      if (emptied.includes(String(name))) database.exec(`DELETE FROM "${String(name)}"`);
    database.exec("VACUUM");
  } finally {
    database.close();
  }
  disk.rename(temporary, to);
  return true;
}
