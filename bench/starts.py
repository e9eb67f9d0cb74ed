"""From the command to the first step of the environment and to the first update, in a process that
finds no compilation cache and in one that finds the cache of the other.

    python bench/starts.py SECONDS ARGUMENTS ...   the command, begun at that time of the clock
"""

import json
import os
import subprocess
import sys
import tempfile
import time

from measure import Row

BARS = {"cold": 15.0, "cached": 5.0}  # seconds to the first step
COMMAND = ["train", "GA-4", "--task", "walker-walk", "--warm-up", "200"]


def rows() -> list[Row]:
    """The limit beside ours, and what the cache gives."""
    with tempfile.TemporaryDirectory() as folder:
        found = {name: _start(folder, name) for name in BARS}
    rows = [
        Row(f"start, {name}, to the first step, the limit", found[name]["step"], bar, "s",
            bar / found[name]["step"], 1.0)
        for name, bar in BARS.items()
    ]  # fmt: skip
    cold, cached = found["cold"]["update"], found["cached"]["update"]
    return [
        *rows,
        Row("start, cached, to the first update, cold", cached, cold, "s", cold / cached),
    ]


def _start(folder: str, name: str) -> dict[str, float]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    printed = subprocess.run(
        [sys.executable, __file__, str(time.time()), *COMMAND, "--run", f"{folder}/{name}"],
        env=environment | {"XDG_CACHE_HOME": folder},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(printed.stdout.splitlines()[-1])


def main(begun: float, arguments: list[str]) -> None:
    """The command itself, which ends once it has learned."""
    from grasp.__main__ import main as command
    from grasp.command_line import prepare_jax

    prepare_jax()  # as the command does, before the next line imports JAX
    from grasp.environments.boundary import Boundary

    seen: dict[str, float] = {}
    step = Boundary.step

    def first(self, action):
        if not seen:
            seen["step"] = time.time() - begun
            from grasp.training import Loop

            Loop.learned = learned  # type: ignore[method-assign]  # the first update ends it
        return step(self, action)

    def learned(self, metrics) -> None:
        seen["update"] = time.time() - begun
        print(json.dumps(seen), flush=True)
        os._exit(0)

    Boundary.step = first  # type: ignore[method-assign]  # the first step is noted
    command(arguments)


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2:])
