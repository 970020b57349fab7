// Removes a directory tree that Lazarus created, even if it contains directories without owner permissions (Go's module
// cache is full of them), which rm -r cannot enter unless run as root.
import { chmodSync, lstatSync, readdirSync, rmSync } from "node:fs";
import { asLazarusError, systemErrorCode } from "./errors.ts";

export function removeTree(root: string | Buffer): void {
  try {
    removeAll(root);
  } catch (error) {
    throw asLazarusError(error, `removing ${root}`, root.toString());
  }
}

function removeAll(root: string | Buffer): void {
  try {
    rmSync(root, { recursive: true, force: true });
  } catch (error) {
    const code = systemErrorCode(error);
    // Node's rm reports some errors, such as EMFILE, without their code; a plain call has it.
    if (code === "") readdirSync(root);
    if (code !== "EACCES" && code !== "EPERM") throw error;
    openDirectories(Buffer.from(root));
    rmSync(root, { recursive: true, force: true });
  }
}

function openDirectories(path: Buffer): void {
  if (!lstatSync(path).isDirectory()) return;
  chmodSync(path, 0o700);
  for (const name of readdirSync(path, { encoding: "buffer" }))
    openDirectories(Buffer.concat([path, Buffer.from("/"), name]));
}
