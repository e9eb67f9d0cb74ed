"""One side of a comparison, in a process of its own: builds the contenders of MODULE.FUNCTION and
times the one whose name it reads, line by line. Started by `measure.py`.
"""

import importlib
import json
import os
import resource
import sys
import time
from typing import Any

SHORTEST = 0.1  # seconds of a turn; what is quicker is called again


def main(function: str, arguments: dict[str, Any]) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print does not mix with the answers
    module, _, name = function.rpartition(".")
    try:
        contenders = getattr(importlib.import_module(module), name)(**arguments)
    except ImportError as problem:
        print(json.dumps({"missing": problem.name}), file=answers, flush=True)
        return
    print(json.dumps({"names": list(contenders)}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(timed(contenders[line.strip()])), file=answers, flush=True)


def timed(call: Any) -> dict[str, float]:
    """Seconds per call over at least `SHORTEST`. A call returns what must be ready before its time
    is over, or a number of its own (`said`).
    """
    calls, begun = 0, time.perf_counter()
    while True:
        answer = call()
        if hasattr(answer, "block_until_ready"):
            answer.block_until_ready()
        calls += 1
        took = time.perf_counter() - begun
        if took >= SHORTEST or isinstance(answer, float):
            break
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found = {"seconds": took / calls, "memory_mb": round(memory)}
    return found | ({"said": answer} if isinstance(answer, float) else {})


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
