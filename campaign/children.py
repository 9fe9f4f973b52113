"""Child processes that may be killed, starved or refused: forks, so that nothing compiles again."""

from __future__ import annotations

import os
import signal
import time
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

_LONGEST = 16_000  # bytes of a traceback, which a pipe holds without a reader


class Ended(NamedTuple):
    """How a child ended: its exit code or the signal that ended it, and what it had to say."""

    code: int
    signal: int
    error: str


class Child:
    """A fork that runs a function; what it raises comes back through a pipe."""

    def __init__(self, run: Callable[[], Any]) -> None:
        self.pipe, end = os.pipe()
        # Before `_run` an interrupt would unwind the stack of the parent, in the child.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.pipe)
            self._run(run, end)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        os.close(end)

    def _run(self, run: Callable[[], Any], end: int) -> None:
        code = 1
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            run()
            code = 0
        except BaseException:
            os.write(end, traceback.format_exc().encode()[-_LONGEST:])
        finally:
            os._exit(code)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal."""
        os.kill(self.pid, number)

    def wait(self, seconds: float | None = None) -> Ended | None:
        """Wait for the end, for at most so many seconds; None if there was none."""
        until = None if seconds is None else time.perf_counter() + seconds
        while True:
            pid, status = os.waitpid(self.pid, 0 if until is None else os.WNOHANG)
            if pid:
                break
            if until is not None and time.perf_counter() > until:
                return None
            time.sleep(0.001)
        with os.fdopen(self.pipe, "rb") as file:
            error = file.read().decode()
        if os.WIFSIGNALED(status):
            return Ended(-1, os.WTERMSIG(status), error)
        return Ended(os.WEXITSTATUS(status), 0, error)

    def ended(self) -> Ended:
        """Wait for the end, however long it takes."""
        found = self.wait()
        assert found is not None
        return found
