"""How many cores there are for us: what pins, containers and `taskset` leave of the machine."""

import os


def visible_cores() -> int:
    """The cores that this process may use; all of them where the system cannot say (macOS)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
