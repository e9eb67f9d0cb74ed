"""The ways a run can end badly, each with the exit code that the command returns."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any


class GraspError(Exception):
    """Said to the user in one sentence, without a traceback."""

    exit_code = 1


class UsageError(GraspError, ValueError):
    """What was asked for is not possible."""

    exit_code = 2


def check_range(
    settings: Any, names: Iterable[str], least: float | int, most: float | int, allowed: str
) -> None:
    """Refuse settings outside a range, by the flags that set them."""
    problems = [
        f"--{name.replace('_', '-')} is {getattr(settings, name)}; it must be {allowed}"
        for name in names
        if not least <= getattr(settings, name) <= most
    ]
    if problems and _collecting:
        _collecting[-1].extend(problems)
    elif problems:
        raise UsageError("; ".join(problems))


_collecting: list[list[str]] = []


@contextlib.contextmanager
def all_at_once() -> Iterator[None]:
    """Every setting that is out of its range in one error, not the first alone."""
    _collecting.append([])
    last: list[str] = []
    try:
        yield
    except UsageError as problem:
        last = [str(problem)]
    finally:
        found = list(dict.fromkeys(_collecting.pop()))
    if found or last:
        raise UsageError("; ".join([*found, *last]))


class EnvironmentFault(GraspError, RuntimeError):
    """The environment broke its contract."""

    exit_code = 3


class EnvironmentRaised(EnvironmentFault):
    """The environment raised an error: its episode is over, the run is not."""


class Diverged(GraspError, FloatingPointError):
    """Learning produced numbers that are not finite."""

    exit_code = 4


class CorruptCheckpoint(GraspError, RuntimeError):
    """A file of a run directory is not what was written."""

    exit_code = 5


class DiskFault(GraspError, RuntimeError):
    """The disk is full, read-only or gone."""

    exit_code = 74


NO_MEMORY = 71  # exit code


def says_out_of_memory(problem: Exception) -> bool:
    """Whether it is Python's, NumPy's or JAX's way of saying so."""
    said = str(problem).lower()
    return (
        isinstance(problem, MemoryError) or "out of memory" in said or "resource_exhausted" in said
    )
