"""The calls of workers and their answers: a line before each call and one after it, unless a SIGKILL comes."""

import json
import time
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

Did = Literal["put", "put_writes", "get", "delete", "delete_checkpoint", "prune", "mistake"]

Told = Literal["acknowledged", "raised", "broken", "unknown"]
"""The outcome of a call: it returned; it raised an error of Threadmark, or one that no caller should ever see; or the
worker ended before it knew."""

OVER = "over"
"""The last line of a worker that was not killed."""


class Call(NamedTuple):
    """A call of a worker, and its answer."""

    worker: str
    did: Did
    thread: str
    ns: str
    checkpoint: str
    """The id of the checkpoint put, deleted or written to; of a `get`, of the one that was found."""
    parent: str
    task: str
    seeds: tuple[int, ...]
    """The seed of the values."""
    began: float
    ended: float
    """Seconds of `time.monotonic`, which all processes of a machine share; infinite for an unknown end."""
    told: Told
    answer: str
    """The result, or the error."""

    @property
    def acknowledged(self) -> bool:
        """Whether the call was acknowledged."""
        return self.told == "acknowledged"

    @property
    def over(self) -> float:
        """When nothing of it can happen any more. A call that missed its deadline may be carried out later."""
        return self.ended if self.acknowledged else float("inf")


class Journal:
    """The notes of one worker about its calls."""

    def __init__(self, worker: str, write: Callable[[str], object]) -> None:
        self.worker = worker
        self._write = write
        self._number = 0

    def begin(self, did: Did, **what: Any) -> int:
        """Note that a call begins. Returns its number."""
        self._number += 1
        self._line(["begin", self._number, time.monotonic(), {"did": did, **what}])
        return self._number

    def end(self, number: int, told: Told, answer: str, **what: Any) -> None:
        """Note its outcome; `what` is known only now."""
        self._line(["end", number, time.monotonic(), {"told": told, "answer": answer, **what}])

    def over(self) -> None:
        """Note that the worker has ended by itself."""
        self._line([OVER, 0, time.monotonic(), {}])

    def _line(self, content: list[Any]) -> None:
        self._write(json.dumps([self.worker, *content]) + "\n")


def calls_of(lines: Iterable[str]) -> list[Call]:
    """Return the calls in the order in which they began."""
    begun: dict[tuple[str, int], Call] = {}
    for line in lines:
        worker, event, number, at, what = json.loads(line)
        if event == "begin":
            begun[worker, number] = _NOTHING._replace(**_read(what), worker=worker, began=at)
        elif event == "end":
            begun[worker, number] = begun[worker, number]._replace(**_read(what), ended=at)
    return sorted(begun.values(), key=lambda call: call.began)


def ended_by_themselves(lines: Iterable[str]) -> set[str]:
    """Return the names of the workers that were not killed."""
    entries = map(json.loads, lines)
    return {worker for worker, event, *_ in entries if event == OVER}


def _read(what: dict[str, Any]) -> dict[str, Any]:
    return {**what, "seeds": tuple(what["seeds"])} if "seeds" in what else what


_NOTHING = Call("", "get", "", "", "", "", "", (), 0.0, float("inf"), "unknown", "")
