#!/usr/bin/env python3
"""Lists a tree exactly, for comparison: one JSON line per path, in byte order.

Deliberately independent: it shares no code with Lazarus. Bytes that are not printable ASCII are percent-escaped. Fields:
path, type, mode, uid, gid, mtime_ns (a string, because JSON readers round it), size, sha256, links (paths of the same
inode), xattrs, target, holes (whether the file occupies less than its size).

Reads requests, one line each: a JSON array of the tree and of paths to skip; `worktree=DIR` lists DIR as the directory
`worktree` of the tree. The answer is a line of 16 bytes, `ok` or `no` and the number of bytes that follow, then the
listing or the error.
"""
import hashlib
import json
import os
import stat
import sys


def show(raw: bytes) -> str:
    return "".join(chr(b) if 0x20 < b < 0x7F and b != 0x25 else "%%%02x" % b for b in raw)


def kind(mode: int) -> str:
    for name in ("DIR", "REG", "LNK", "FIFO", "SOCK", "CHR", "BLK"):
        if getattr(stat, "S_IS" + name)(mode):
            return name.lower()
    return "?"


def xattrs(path: bytes) -> dict:
    try:
        names = os.listxattr(path, follow_symlinks=False)
    except OSError:
        return {}
    return {name: os.getxattr(path, name, follow_symlinks=False).hex() for name in sorted(names)}


def digest(path: bytes) -> str:
    value = hashlib.sha256()
    with open(path, "rb") as file:
        for chunk in iter(lambda: file.read(1 << 20), b""):
            value.update(chunk)
    return value.hexdigest()


def place(root: bytes, path: bytes, outside) -> bytes:
    name, _, rest = path.partition(b"/")
    if outside is None or name != b"worktree":
        return os.path.join(root, path) if path else root
    return os.path.join(outside, rest) if rest else outside


def walk(root: bytes, outside):
    yield b"."
    pending = [b""]
    while pending:
        directory = pending.pop()
        for name in sorted(os.listdir(place(root, directory, outside))):
            path = directory + b"/" + name if directory else name
            yield path
            if stat.S_ISDIR(os.lstat(place(root, path, outside)).st_mode):
                pending.append(path)


def list_tree(tree: str, *others: str) -> str:
    root = os.fsencode(tree)
    mark = "worktree="
    outside = next((os.fsencode(each[len(mark):]) for each in others if each.startswith(mark)), None)
    skip = {os.fsencode(each) for each in others if not each.startswith(mark)}
    paths = sorted(path for path in walk(root, outside) if not any(path == s or path.startswith(s + b"/") for s in skip))
    inodes = {}
    for path in paths:
        info = os.lstat(place(root, path, outside))
        if stat.S_ISREG(info.st_mode) and info.st_nlink > 1:
            inodes.setdefault((info.st_dev, info.st_ino), []).append(show(path))
    rows = []
    for path in paths:
        full = place(root, path, outside)
        info = os.lstat(full)
        row = {
            "path": show(path),
            "type": kind(info.st_mode),
            "mode": "%04o" % stat.S_IMODE(info.st_mode),
            "uid": info.st_uid,
            "gid": info.st_gid,
            "mtime_ns": str(info.st_mtime_ns),
        }
        if stat.S_ISREG(info.st_mode):
            row["size"] = info.st_size
            row["sha256"] = digest(full)
            row["holes"] = info.st_blocks * 512 < info.st_size
            group = inodes.get((info.st_dev, info.st_ino), [])
            if len(group) > 1:
                row["links"] = group
        if stat.S_ISLNK(info.st_mode):
            row["target"] = show(os.readlink(full))
        attributes = xattrs(full)
        if attributes:
            row["xattrs"] = attributes
        rows.append(json.dumps(row, sort_keys=True))
    return "\n".join(rows)


def main() -> None:
    for line in sys.stdin.buffer:
        try:
            status, text = "ok", list_tree(*json.loads(line))
        except Exception as error:
            status, text = "no", repr(error)
        answer = text.encode()
        sys.stdout.buffer.write(b"%-15s\n" % f"{status} {len(answer)}".encode() + answer)
        sys.stdout.buffer.flush()


main()
