"""The ways a run can end badly, each with the exit code that the command returns."""


class GraspError(Exception):
    """Said to the user in one sentence, without a traceback."""

    exit_code = 1


class UsageError(GraspError, ValueError):
    """What was asked for is not possible."""

    exit_code = 2


class EnvironmentFault(GraspError, RuntimeError):
    """The environment broke its contract."""

    exit_code = 3


class Diverged(GraspError, FloatingPointError):
    """Learning produced numbers that are not finite."""

    exit_code = 4


class CorruptCheckpoint(GraspError, RuntimeError):
    """A file of a run directory is not what was written."""

    exit_code = 5
