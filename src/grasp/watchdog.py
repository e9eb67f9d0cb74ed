"""What ends a run that its own loop cannot end: an environment that hangs, and a signal that comes
while compiled code runs.

A thread looks four times a second. An environment that has been busy for too long is interrupted by
an exception in the main thread; where that does not help because the environment is in compiled
code, and when a signal has waited for four seconds, the process ends with the exit code that it
would have had. The last checkpoint is then what a run goes on from.
"""

import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from grasp.errors import EnvironmentFault

SIGNALS = (signal.SIGINT, signal.SIGTERM)
SIGNAL_SECONDS = 4.0  # that the loop has to save and leave after a signal
MERCY_SECONDS = 3.0  # that an interrupted environment has to unwind


class Busy(Protocol):
    """An environment, and what it has been doing since when."""

    name: str
    busy: tuple[str, float] | None


class Hung(BaseException):
    """Not an Exception, so that no `except Exception` in an environment swallows it."""


class Watchdog:
    """Watches over environments in the main thread; `stop` is told of signals."""

    def __init__(
        self,
        worlds: Callable[[], Sequence[Busy]],
        patience: float | int,
        stop: Callable[[signal.Signals], None],
        leave: Callable[[int], Any] | None,
    ):
        self._worlds, self._patience, self._stop, self._leave = worlds, patience, stop, leave
        self._asked: tuple[signal.Signals, float] | None = None
        self._done = threading.Event()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Take over SIGINT, SIGTERM and SIGALRM; outside the main thread nothing happens."""
        try:
            handlers = dict.fromkeys(SIGNALS, self._on_signal) | {signal.SIGALRM: self._on_alarm}
            before = {number: signal.signal(number, take) for number, take in handlers.items()}
        except ValueError:  # not the main thread
            yield
            return
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        wakeup = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        thread = threading.Thread(target=self._watch, args=(reader,), daemon=True)
        thread.start()
        try:
            yield
        except Hung as hung:
            raise EnvironmentFault(str(hung)) from None
        finally:
            self._done.set()
            thread.join()
            signal.set_wakeup_fd(wakeup)
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(reader)
            os.close(writer)

    def _on_signal(self, number: int, frame: Any) -> None:
        self._stop(signal.Signals(number))

    def _on_alarm(self, number: int, frame: Any) -> None:
        sentence = self._hung()
        if sentence is not None:
            raise Hung(sentence)

    def _hung(self) -> str | None:
        now = time.monotonic()
        for world in self._worlds():
            busy = world.busy
            if busy is not None and now - busy[1] > self._patience:
                return (
                    f"{world.name} has not returned from {busy[0]} for {self._patience:g} s; "
                    "the last checkpoint is good: mend the environment or raise --patience"
                )
        return None

    def _watch(self, reader: int) -> None:
        interrupted = None
        while not self._done.is_set():
            if select.select([reader], [], [], 0.25)[0]:
                numbers = [n for n in os.read(reader, 64) if n in SIGNALS]
                if numbers and self._asked is None:
                    self._asked = (signal.Signals(numbers[0]), time.monotonic())
            now = time.monotonic()
            sentence = self._hung()
            if sentence is None:
                interrupted = None
            elif interrupted is None:
                interrupted = now
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)
            elif now - interrupted > MERCY_SECONDS:
                self._end(sentence, EnvironmentFault.exit_code)
            if self._asked is not None and now - self._asked[1] > SIGNAL_SECONDS:
                self._end(
                    f"stopped by {self._asked[0].name} without a last checkpoint; the same command "
                    "continues from the one before",
                    128 + self._asked[0],
                )

    def _end(self, sentence: str, code: int) -> None:
        if self._leave is not None and not self._done.is_set():
            print(f"grasp: {sentence}", file=sys.stderr, flush=True)
            self._leave(code)
