// A busy writer: transactions of two rows each, as fast as possible, until its parent kills it. Every committed state
// holds an even number of rows, and the counter equals the last row's number.
import { writeSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";

const [file = "", journal = "WAL", ballast = "0"] = process.argv.slice(2);
const database = new DatabaseSync(file, { timeout: 20_000 });
database.exec(`PRAGMA journal_mode = ${journal}; PRAGMA synchronous = OFF;`);
database.exec(
  "CREATE TABLE IF NOT EXISTS pair (n INTEGER, filler TEXT); CREATE TABLE IF NOT EXISTS counter (n INTEGER)",
);
database.exec("DELETE FROM counter; DELETE FROM pair; INSERT INTO counter VALUES (0)");
database.exec(`CREATE TABLE IF NOT EXISTS ballast AS SELECT zeroblob(${Number(ballast)}) AS body`);
writeSync(1, "ready\n");
for (let n = 1; ; n += 1) {
  database.exec("BEGIN IMMEDIATE");
  database.exec(`INSERT INTO pair VALUES (${n}, hex(randomblob(300)))`);
  database.exec(`INSERT INTO pair VALUES (${n}, hex(randomblob(300)))`);
  database.exec(`DELETE FROM pair WHERE n = ${n - 400}`);
  database.exec(`UPDATE counter SET n = ${n}`);
  database.exec("COMMIT");
}
