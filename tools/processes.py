"""Processes and their sockets, from Linux's /proc: for tests and fault suites."""

import contextlib
import os
import signal
from pathlib import Path

LOOPBACK = {
    "0100007F",  # 127.0.0.1
    "0000000000000000FFFF00000100007F",  # the same, mapped into IPv6
    "00000000000000000000000001000000",  # ::1
}


def parents() -> dict[int, int]:
    """The parent of every process."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                stat = Path(f"/proc/{entry}/stat").read_text()
                found[int(entry)] = int(stat.rpartition(")")[2].split()[1])
    return found


def below(pid: int) -> list[int]:
    """The processes below one."""
    found, new, known = [], [pid], parents()
    while new:
        new = [child for child, parent in known.items() if parent in new]
        found += new
    return found


def listeners(pid: int) -> set[str]:
    """The addresses on which a process and those below it listen, in /proc's hexadecimal."""
    sockets = set()
    for one in (pid, *below(pid)):
        with contextlib.suppress(OSError):
            for link in Path(f"/proc/{one}/fd").iterdir():
                with contextlib.suppress(OSError):
                    sockets.add(os.readlink(link))
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            cells = line.split()
            if cells[3] == "0A" and f"socket:[{cells[9]}]" in sockets:
                found.add(cells[1].partition(":")[0])
    return found


def command_of(pid: int) -> list[str]:
    """Its arguments; none when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
    except OSError:
        return []


def kill(pid: int) -> None:
    """Without warning; one that is gone already stays so."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
