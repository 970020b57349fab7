// `npm run docs`: writes the pages of docs/ that are generated from the sources.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { settingsPage } from "../src/cli/settings-page.ts";

writeFileSync(join(import.meta.dirname, "..", "docs", "settings.md"), settingsPage());
