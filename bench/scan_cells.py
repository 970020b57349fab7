"""A simple Python version of `lazarus scan --json`, to compare with. Uses only the standard library.

Usage: scan_cells.py MISSIONS_ROOT [STALE_AFTER_SECONDS]
"""

import json
import sys
import time
from pathlib import Path

REQUIRED_SUBDIRS = ["meta", "config", "state", "logs", "artifacts", "worktree"]


def read_timestamp(path):
    try:
        timestamp = json.loads(path.read_text()).get("timestamp")
    except (OSError, ValueError, AttributeError):
        return None
    return timestamp if isinstance(timestamp, (int, float)) else None


def report_cell(root, now, stale_after_seconds):
    missing = [name for name in REQUIRED_SUBDIRS if not (root / name).is_dir()]
    timestamp = read_timestamp(root / "state" / "heartbeat.json")
    age = None if timestamp is None else max(0, int(now - timestamp))
    if missing:
        status = "incomplete"
    elif timestamp is None:
        status = "uninitialized"
    elif now - timestamp > stale_after_seconds:
        status = "stale"
    else:
        status = "healthy"
    return {
        "mission_id": root.name,
        "root": str(root),
        "status": status,
        "age_seconds": age,
        "last_timestamp": timestamp,
        "missing_paths": missing,
    }


def scan(missions_root, stale_after_seconds):
    now = time.time()
    roots = sorted(path for path in Path(missions_root).iterdir() if path.is_dir())
    cells = [report_cell(root, now, stale_after_seconds) for root in roots]
    summary = {"total_cells": len(cells), "healthy": 0, "stale": 0, "incomplete": 0, "uninitialized": 0}
    for cell in cells:
        summary[cell["status"]] += 1
    return {
        "missions_root": str(missions_root),
        "heartbeat_job": "lazarus_pit",
        "heartbeat_interval_seconds": 60,
        "summary": summary,
        "cells": cells,
    }


if __name__ == "__main__":
    limit = float(sys.argv[2]) if len(sys.argv) > 2 else 180
    json.dump(scan(sys.argv[1], limit), sys.stdout)
    print()
