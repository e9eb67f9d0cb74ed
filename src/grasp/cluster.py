"""Jobs as Ray tasks: on this machine, or on the nodes of a cluster that see the same folder.

A task runs one job in a worker of its own with one thread. All that must survive is in the run
directory, so a task whose worker or node is lost is submitted again and continues from the last
checkpoint; the lock of the run directory keeps two workers apart.

By default Ray is started here for this sweep alone: it listens on the loopback address only and
has no dashboard.
"""

import dataclasses
import importlib.util
import os
import secrets
from typing import Any

from grasp.errors import UsageError
from grasp.sweeps import Job, Process

LOST = 137  # the exit code of a start whose worker was killed


def check_ray() -> None:
    """Refuse before anything is written."""
    if importlib.util.find_spec("ray") is None:
        raise UsageError("--on ray needs the package ray; pip install 'grasp-rl[ray]'")


class RayJobs:
    """A Ray to start jobs on."""

    def __init__(self, address: str = "local", cores: int | None = None):
        check_ray()
        # Ray reads these when it is imported or started.
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        if address == "local":
            # Its node is 127.0.0.1 and so listens there only; else Ray takes an outer address.
            os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
            # A secret of its own, which no file keeps.
            os.environ["RAY_AUTH_MODE"] = "token"
            os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
        import ray  # type: ignore[import-not-found]  # optional

        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
        try:
            if address == "local":
                ray.init(
                    address="local", num_cpus=cores, include_dashboard=False,
                    _node_ip_address="127.0.0.1", **quiet,
                )  # fmt: skip
            else:
                ray.init(address=address, **quiet)
        except (ConnectionError, ValueError, RuntimeError) as problem:
            said = str(problem).partition("\n")[0]
            raise UsageError(
                f"no Ray at --address {address!r} ({said}); start one with `ray start --head`, "
                "or leave --address out"
            ) from None
        self._ray = ray
        self.cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
        # No retries by Ray: the sweep itself starts again what is lost, and counts.
        self._task = ray.remote(num_cpus=1, max_retries=0)(run_job)

    def start(self, job: Job) -> "RayTask":
        placed = dataclasses.replace(job, run=job.run.absolute())
        return RayTask(self._ray, self._task.options(name=job.run.name).remote(placed))


class RayTask:
    """One start of a job."""

    def __init__(self, ray: Any, reference: Any):
        self._ray, self._reference = ray, reference
        self._words = ""

    def code(self) -> int | None:
        done, _ = self._ray.wait([self._reference], timeout=0)
        if not done:
            return None
        try:
            code, self._words = self._ray.get(self._reference)
            return code
        except self._ray.exceptions.RayError as problem:  # the worker or its node is gone
            self._words = str(problem).partition("\n")[0]
            return LOST

    def said(self) -> str:
        return self._words

    def stop(self) -> None:
        """The worker goes, its process saves and stops."""
        self._ray.cancel(self._reference, force=True)


def run_job(job: Job) -> tuple[int, str]:
    """In a worker: the job as a process that ends with the worker; its exit code and last words."""
    started = Process(job)
    code = started.process.wait()
    return code, started.said()
