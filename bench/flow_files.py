"""The peer of `flow list` and `flow selfcheck`: the same work on the same files, in plain Python.

Reads every flow below a workspace, checks schema and hash, and prints the list or the self-check as plain text,
as a small script would. Usage: flow_files.py list|selfcheck ROOT [STALE_MINUTES]
"""
import hashlib
import json
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

STATUSES = {"in_progress", "blocked", "done", "failed"}
TEXTS = ["workflowId", "agentId", "currentStep", "idempotencyKey", "updatedAt"]


def parse_time(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def check(flow, stem):
    if flow.get("schemaVersion") != "1.0" or flow.get("status") not in STATUSES:
        return False
    if not all(isinstance(flow.get(field), str) for field in TEXTS) or flow["workflowId"] != stem:
        return False
    for field in ("completedSteps", "remainingSteps"):
        steps = flow.get(field)
        if not isinstance(steps, list) or not all(isinstance(step, str) for step in steps):
            return False
    parse_time(flow["updatedAt"])
    if flow.get("expiresAt"):
        parse_time(flow["expiresAt"])
    if "checkpointHash" not in flow:
        return True
    content = {key: value for key, value in flow.items() if key != "checkpointHash"}
    blob = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    return hashlib.sha256(blob).hexdigest() == flow["checkpointHash"]


def directories(root):
    yield root / "memory" / "checkpoints"
    agents = root / "agents"
    if agents.exists():
        for agent in sorted(agents.iterdir()):
            yield agent / "memory" / "checkpoints"


def read_all(root):
    for directory in directories(root):
        if not directory.exists():
            continue
        for path in sorted(directory.glob("*.json")):
            if path.name == "CHECKPOINT_SCHEMA.json":
                continue
            try:
                flow = json.loads(path.read_text(encoding="utf-8"))
                yield path, flow if check(flow, path.stem) else None
            except Exception:
                yield path, None


def show_list(root):
    for path, flow in read_all(root):
        if flow is None:
            print(f"{path.name}\tINVALID")
        else:
            print(f"{flow['workflowId']}\t{flow['status']}\t{flow['currentStep']}\t{flow['updatedAt']}")


def selfcheck(root, stale_minutes):
    now = datetime.now(timezone.utc)
    stale, invalid = [], 0
    for path, flow in read_all(root):
        if flow is None:
            invalid += 1
            continue
        if flow["status"] not in ("in_progress", "blocked"):
            continue
        if flow.get("expiresAt") and parse_time(flow["expiresAt"]) <= now:
            continue
        age = now - parse_time(flow["updatedAt"])
        if age > timedelta(minutes=stale_minutes):
            stale.append((flow["agentId"], flow["workflowId"], int(age.total_seconds() / 60), path.as_posix()))
    if not stale and not invalid:
        print("OK")
        return 0
    print(f"ALERT stale_checkpoints={len(stale)} threshold_min={stale_minutes} invalid_files={invalid}")
    for agent, workflow, age, path in stale[:50]:
        print(f"- {agent}:{workflow} age={age}m file={path}")
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "list":
        show_list(Path(sys.argv[2]))
    else:
        sys.exit(selfcheck(Path(sys.argv[2]), int(sys.argv[3])))
