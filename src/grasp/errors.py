"""The ways a run can end badly, each with the exit code that the command returns."""

from collections.abc import Iterable
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
    """Refuse settings outside a range, by the flag that sets them."""
    for name in names:
        value = getattr(settings, name)
        if not least <= value <= most:
            flag = "--" + name.replace("_", "-")
            raise UsageError(f"{flag} is {value}; it must be {allowed}")


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
