"""The sweeper of a store: a thread that removes expired items again and again, until the store is closed."""

import threading
from collections.abc import Callable
from concurrent.futures import Future

from threadmark.runtime.logs import log


class Sweeper:
    """Calls a function every so many seconds on a daemon thread."""

    def __init__(self, sweep: Callable[[], int]) -> None:
        self._sweep = sweep
        self._stopped = threading.Event()
        self._changing = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self, seconds: float) -> "Future[None]":
        """Start it, unless it runs. The future is done when it has ended; cancelling it has no effect."""
        ended: Future[None] = Future()
        with self._changing:
            if self._thread is not None and self._thread.is_alive():
                ended.set_result(None)
                return ended
            self._stopped.clear()
            self._thread = threading.Thread(
                target=self._run, args=(seconds, ended), name="threadmark-store-sweeper", daemon=True
            )
            self._thread.start()
        return ended

    def stop(self, timeout: float | None = None) -> bool:
        """End it, and wait for a running sweep. Returns whether it has ended."""
        with self._changing:
            thread, self._thread = self._thread, None
        self._stopped.set()
        if thread is None or thread is threading.current_thread():
            return True
        thread.join(timeout)
        return not thread.is_alive()

    def _run(self, seconds: float, ended: "Future[None]") -> None:
        while not self._stopped.wait(seconds):
            try:
                self._sweep()
            except Exception as error:  # noqa: BLE001 - the next sweep may succeed
                log.warning("expired items were not removed: %s: %s", type(error).__name__, error)
        ended.set_result(None)
