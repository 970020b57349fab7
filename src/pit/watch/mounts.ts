// Mounts that limit a watch. A mount in or above a tree replaces directories without any event, and on a file system that
// other machines write to, inotify reports only the writes of this one. Pure: the caller reads /proc/self/mountinfo.

export interface Mount {
  readonly path: string;
  readonly type: string;
  /** The whole line without its variable parts, so that two mounts of the same path differ. */
  readonly key: string;
}

/** File systems whose changes may come from another machine, or bypass the kernel. */
const REMOTE =
  /^(nfs\d?|cifs|smb\d?|smbfs|9p|afs|ceph|lustre|gpfs|glusterfs|ocfs2|gfs2|virtiofs|vboxsf|ncpfs|fuse|fuse\..*)$/;

export function parseMounts(text: string): Mount[] {
  const mounts: Mount[] = [];
  for (const line of text.split("\n")) {
    const [place, source] = line.split(" - ");
    const fields = place?.split(" ") ?? [];
    const [type = ""] = source?.split(" ") ?? [];
    const [id, , device, root, path] = fields;
    if (path === undefined) continue;
    mounts.push({ path: decodeOctal(path), type, key: [id, device, root, path, type].join(" ") });
  }
  return mounts;
}

/** The mounts that a directory is on or contains, the one that it is on first. */
export function findMountsOf(mounts: readonly Mount[], directory: string): Mount[] {
  const isIn = (path: string, parent: string) =>
    path === parent || parent === "/" || path.startsWith(`${parent}/`);
  const above = mounts.filter(({ path }) => isIn(directory, path));
  const longest = Math.max(0, ...above.map(({ path }) => path.length));
  // Of several mounts on one path, the last one counts.
  const own = above.findLast(({ path }) => path.length === longest);
  const below = mounts.filter(({ path }) => path !== directory && isIn(path, directory));
  return own === undefined ? below : [own, ...below];
}

/** Why some changes on these mounts are not reported; undefined when all are. */
export function findRemote(mounts: readonly Mount[]): string | undefined {
  const remote = mounts.find(({ type }) => REMOTE.test(type));
  return remote && `${remote.path} is a ${remote.type} file system, whose changes inotify does not report`;
}

/** Spaces, tabs, newlines and backslashes are written as \040 and so on. */
function decodeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
}
