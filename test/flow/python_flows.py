"""Flow files as a Python tool writes and reads them, independent of Lazarus: only json, hashlib and datetime.

    python_flows.py make DIR           writes the fixtures of the Python side
    python_flows.py check FILE...      prints "ok" or "bad" per file, by the hash rule of the Python tool
    python_flows.py canonical          reads one JSON text per line; prints the SHA-256 of its canonical form
    python_flows.py update FILE STEP   completes a step as the Python tool does, and writes the file back
"""
import hashlib
import json
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path


def digest(flow, **options):
    content = {key: value for key, value in flow.items() if key != "checkpointHash"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), **options)
    return hashlib.sha256(text.encode()).hexdigest()


def flow(workflow, **changes):
    start = datetime(2026, 11, 15, 23, 53, 1, 123456, tzinfo=timezone.utc)
    made = {
        "schemaVersion": "1.0",
        "workflowId": workflow,
        "agentId": "anna",
        "status": "in_progress",
        "currentStep": "fetch",
        "completedSteps": [],
        "remainingSteps": ["fetch", "write", "send"],
        "handoffTo": None,
        "notes": "",
        "idempotencyKey": workflow + "-1",
        "updatedAt": start.isoformat(),
        "expiresAt": (start + timedelta(days=36500)).isoformat(),
    }
    made.update(changes)
    return made


def write(directory, made, **options):
    made["checkpointHash"] = digest(made, **options)
    path = directory / (made["workflowId"] + ".json")
    path.write_text(json.dumps(made, indent=2, **options), encoding="utf-8")


def make(directory):
    directory.mkdir(parents=True, exist_ok=True)
    write(directory, flow("plain"))
    write(directory, flow("done-one", status="done", completedSteps=["fetch", "write", "send"], remainingSteps=[]))
    write(directory, flow("blocked-one", status="blocked", handoffTo="ben", notes="waits for the key"))
    write(directory, flow("no-fraction", updatedAt="2026-11-15T23:53:01+00:00"))
    text = "Grüße, \u2028 \u007f \U0001f600 \"quoted\" back\\slash \t tab \u001b[31m"
    write(directory, flow("not-ascii", notes=text, completedSteps=["größer", "\U0001f680"]))
    write(directory, flow("as-utf8", notes=text, currentStep="é"), ensure_ascii=False)
    write(directory, flow("with spaces in its name"))
    numbers = [0, -0.0, 1.0, 1.5, 1e5, 1e16, 1.5e300, 1e-5, 1e-7, 0.0001, 123456789012345678901234567890, 2**53 + 1, -7]
    write(directory, flow("numbers", custom={"numbers": numbers, "big": 10**40, "float": 100.0, "flag": True}))
    astral = {"\U0001f600": 1, "\uff5e": 2, "z": 3, "a": {"\U0001f4a9": [1.0, {"b": None, "a": 0.1}]}, "10": 1, "9": 2, "": 0}
    write(directory, flow("deep-unknown", extension=astral, zzz=[[], {}, [[[1]]]]))
    unhashed = flow("unhashed")
    (directory / "unhashed.json").write_text(json.dumps(unhashed, indent=2), encoding="utf-8")


def check(paths):
    for path in paths:
        read = json.loads(Path(path).read_text(encoding="utf-8"))
        print("ok" if read.get("checkpointHash") == digest(read) else "bad")


def canonical(lines):
    for line in lines:
        print(digest(json.loads(line)))


def update(path, step):
    read = json.loads(path.read_text(encoding="utf-8"))
    if step not in read["completedSteps"]:
        read["completedSteps"].append(step)
    read["remainingSteps"] = [other for other in read["remainingSteps"] if other != step]
    read["updatedAt"] = datetime.now(timezone.utc).isoformat()
    read["checkpointHash"] = digest(read)
    path.write_text(json.dumps(read, indent=2), encoding="utf-8")


if __name__ == "__main__":
    verb, *rest = sys.argv[1:]
    if verb == "make":
        make(Path(rest[0]))
    elif verb == "check":
        check(rest)
    elif verb == "canonical":
        canonical(sys.stdin)
    elif verb == "update":
        update(Path(rest[0]), rest[1])
