import { expect, it } from "vitest";
import { findMountsOf, findRemote, parseMounts } from "./mounts.ts";

const TABLE = `21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
22 21 0:40 / /srv/a\\040b rw - tmpfs tmpfs rw
23 21 0:41 /x /srv/app/data rw - nfs4 server:/x rw
24 21 0:42 / /srv/apple rw - fuse.sshfs host: rw
25 21 0:43 / /srv/app rw - ext4 /dev/vdb rw
`;

it("finds the mounts that a directory is on and contains", () => {
  const mounts = parseMounts(TABLE);
  const paths = (directory: string) => findMountsOf(mounts, directory).map(({ path }) => path);
  expect(paths("/home/user")).toEqual(["/"]);
  expect(paths("/srv/a b/c")).toEqual(["/srv/a b"]);
  expect(paths("/srv/app")).toEqual(["/srv/app", "/srv/app/data"]);
  expect(paths("/srv/app/src")).toEqual(["/srv/app"]);
});

it("names a file system whose changes are not reported", () => {
  const mounts = parseMounts(TABLE);
  expect(findRemote(findMountsOf(mounts, "/srv/app"))).toContain("/srv/app/data is a nfs4 file system");
  expect(findRemote(findMountsOf(mounts, "/srv/apple"))).toContain("fuse.sshfs");
  expect(findRemote(findMountsOf(mounts, "/home"))).toBe(undefined);
});
