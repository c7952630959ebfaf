"""The programs of a cached saver's transactions: those of any saver, played in pieces.

A program that reads begins in a transaction, which ends when the program asks for segments. Mostly it asks for nothing
else after that, so the rest needs no transaction: its result is the database's state in the first one.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from threadmark.around.deferred import StoreCall, expect_store_call
from threadmark.program import Program, Step, relay
from threadmark.store.contract import Found, Store, all_held

T = TypeVar("T")

Segments = Mapping[str, Mapping[bytes, bytes]]
"""Segments by thread and key."""

_REMOVALS = ("drop", "remove")
"""The operations that remove bytes from a thread, which is their first argument."""

_REPEATABLE = ("thread", "thread_outlines", "epoch")
"""The calls that may be made twice, as an owner's view does. Within one transaction the answer is the same."""


class Done(NamedTuple, Generic[T]):
    """A program that has returned."""

    value: T
    read: Segments
    """The segments that came from the database."""


@dataclass
class Begun(Generic[T]):
    """A program that waits for segments. Its transaction is over."""

    steps: Program[T]
    call: StoreCall | None = None
    """The call that it makes."""
    epochs: dict[str, int] = field(default_factory=dict)
    """Those of the threads that it has read."""
    finds: bool = False
    """Whether it has asked for one checkpoint, whose segments a backend may return with it."""
    _answers: list[tuple[StoreCall, Any]] = field(default_factory=list)

    def see(self, call: StoreCall, answer: Any) -> None:
        """Note an answer of the transaction."""
        if isinstance(answer, Found):
            self.finds = True
            self.epochs[call.args[0]] = answer.epoch
        elif call.method == "newest":
            self.epochs.update((thread_id, found.epoch) for thread_id, found in answer.items())
        elif call.method in _REPEATABLE:
            self._answers.append((call, answer))

    def next_call(self, answer: Any) -> StoreCall:
        """Answer the program's call. Returns its next call; raises StopIteration at its end."""
        return expect_store_call(self.steps.send(answer))

    def answered(self, call: StoreCall) -> tuple[Any] | None:
        """Return the transaction's answer to the same call, None if it was not made."""
        return next(((answer,) for asked, answer in self._answers if asked == call), None)


def wants_segments(call: StoreCall) -> bool:
    """Whether a program asks for segments."""
    return call.method in ("segments", "segments_of")


def needed_by(call: StoreCall) -> dict[str, Collection[bytes]]:
    """Return which segments a program asks for, by thread."""
    if call.method == "segments":
        thread_id, keys = call.args
        return {thread_id: keys}
    return dict(call.args[0])


def lacking(needed: Mapping[str, Collection[bytes]], known: Segments) -> dict[str, list[bytes]]:
    """Return which of the wanted segments are not known, in order. A thread that lacks none is left out."""
    keys_of = {
        thread_id: sorted(key for key in keys if key not in known.get(thread_id, ()))
        for thread_id, keys in needed.items()
    }
    return {thread_id: keys for thread_id, keys in keys_of.items() if keys}


def answer_to(call: StoreCall, segments: Segments) -> Any:
    """Return the answer to a program that asks for segments."""
    found = {
        thread_id: {key: segments[thread_id][key] for key in keys if key in segments.get(thread_id, ())}
        for thread_id, keys in needed_by(call).items()
    }
    return found[call.args[0]] if call.method == "segments" else found


def until_segments(program: Callable[[], Program[T]], store: Store) -> Program[Begun[T] | Done[T]]:
    """Run a program until it asks for segments, or to its end."""
    steps = program()
    begun = Begun(steps)
    try:
        call = expect_store_call(next(steps))
        while not wants_segments(call):
            try:
                answer = yield from _without_segments(call).on(store)
            except Exception as error:  # noqa: BLE001 - it may handle it; if not, the error passes through
                call = expect_store_call(steps.throw(error))
            else:
                begun.see(call, answer)
                call = expect_store_call(steps.send(answer))
        for thread_id in needed_by(call).keys() - begun.epochs.keys():
            begun.epochs[thread_id] = (yield from store.epoch(thread_id)) or 0
        begun.call = call
    except StopIteration as stop:
        return Done(stop.value, {})
    finally:
        if begun.call is None:
            steps.close()
    return begun


def with_segments(program: Callable[[], Program[T]], store: Store, known: Segments) -> Program[Done[T]]:
    """Run a whole program. Segments that are known are not read."""
    read: dict[str, dict[bytes, bytes]] = {}

    def answer(step: Step) -> Program[Any]:
        return _answered(expect_store_call(step), store, known, read)

    return Done((yield from relay(program(), answer)), read)


def noting_removals(program: Callable[[], Program[T]], shortened: set[str]) -> Program[T]:
    """Run a program as it is, and note the threads from which it takes bytes away."""

    def answer(step: Step) -> Program[Any]:
        if isinstance(step, StoreCall) and step.method in _REMOVALS:
            shortened.add(step.args[0])
        return (yield step)

    return relay(program(), answer)


def _answered(call: StoreCall, store: Store, known: Segments, read: dict[str, dict[bytes, bytes]]) -> Program[Any]:
    if not wants_segments(call):
        has_some = call.method == "find" and bool(known.get(call.args[0]))
        answer = yield from (_without_segments(call) if has_some else call).on(store)
        if isinstance(answer, Found):
            read.setdefault(call.args[0], {}).update(answer.segments)
        return answer
    needed = needed_by(call)
    found = yield from fetched(store, lacking(needed, known))
    for thread_id, segments in found.items():
        read.setdefault(thread_id, {}).update(segments)
    both = {thread_id: {**known.get(thread_id, {}), **found.get(thread_id, {})} for thread_id in needed}
    return answer_to(call, both)


def fetched(store: Store, needed: Mapping[str, Collection[bytes]]) -> Program[dict[str, dict[bytes, bytes]]]:
    """Read segments in as few statements as possible."""
    if len(needed) > 1:
        return (yield from store.segments_of(needed))
    found: dict[str, dict[bytes, bytes]] = {}
    for thread_id, keys in needed.items():
        found[thread_id] = yield from store.segments(thread_id, sorted(keys))
    return found


def _without_segments(call: StoreCall) -> StoreCall:
    """Return the call so that no segments come with the answer."""
    return StoreCall("find", (*call.args[:3], all_held), {}) if call.method == "find" else call
