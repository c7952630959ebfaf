"""Random use of a saver, compared with plain dictionaries after every step (hypothesis finds and shrinks failures)."""

import asyncio
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from threadmark.errors import ThreadDeletedError
from threadmark.metadata import matches
from threadmark.model import CheckpointTuple
from threadmark.saver import Saver
from threadmark_conformance.backend import Backend, World
from threadmark_conformance.engine import at, checkpoint, listed
from threadmark_conformance.expectation import Expectation, Kept

_TEXTS = [letter * 300 for letter in "abc"]
_THREADS = st.sampled_from(["t", "t1", "t\x00"])
_NAMESPACES = st.sampled_from(["", "a", "ab"])
_CHANNELS = ("x", "y", "z")
_TASKS = st.sampled_from(["one", "two"])
_VALUES = st.one_of(
    st.sampled_from([None, 0, "", (), [1, (2,)]]),
    st.lists(st.sampled_from(_TEXTS), max_size=8),
    st.dictionaries(st.sampled_from("pq"), st.lists(st.sampled_from(_TEXTS), max_size=4), max_size=2),
)
_CHANGES = st.dictionaries(st.sampled_from(_CHANNELS), _VALUES, max_size=2)
_METADATA = st.sampled_from([{}, {"k": 1}, {"k": True}, {"k": None}, {"run_id": "r"}, {"run_id": "r", "k": [1.0]}])
_WRITES = st.lists(st.tuples(st.sampled_from([*_CHANNELS, "__error__", "__resume__"]), _VALUES), max_size=3)
_PICKS = st.integers(0, 1 << 16)


def check_model(backend: Backend, api: str, *, examples: int = 25, steps: int = 40) -> None:
    """Use savers on fresh databases at random and compare them with dictionaries, `examples` times."""

    class Machine(SaverMachine):
        """The machine on this backend."""

        chosen_backend = staticmethod(backend)
        chosen_api = api

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


class SaverMachine(RuleBasedStateMachine):
    """Three savers with different caches on one database, and the content that they should have."""

    chosen_backend: Backend
    chosen_api: str

    def __init__(self) -> None:
        super().__init__()
        self._open = ExitStack()
        self._expected = Expectation()
        self._clock = 1000

    @initialize(cache=st.sampled_from([0, 3000, 1 << 20]))
    def open(self, cache: int) -> None:
        """Open three savers with caches of different sizes."""
        folder = Path(self._open.enter_context(tempfile.TemporaryDirectory()))
        opener = self._open.enter_context(self.chosen_backend(folder))
        self._runner = self._open.enter_context(asyncio.Runner())
        self._world = World(opener, self.chosen_api)
        self._savers = [self._world.saver, self._world.another(cache_bytes=cache), self._world.another(cache_bytes=0)]

    def teardown(self) -> None:
        """Close everything."""
        if hasattr(self, "_world"):
            self._runner.run(self._world.__aexit__(None, None, None))
        self._open.close()

    @rule(pick=_PICKS)
    def reopen(self, pick: int) -> None:
        """Replace a saver by one that remembers nothing."""
        self._savers[pick % 3] = self._world.another()

    @rule(
        pick=_PICKS,
        thread=_THREADS,
        ns=_NAMESPACES,
        parent=_PICKS,
        change=_CHANGES,
        emptied=st.sets(st.sampled_from(_CHANNELS), max_size=1),
        left_out=st.sets(st.sampled_from(_CHANNELS), max_size=2),
        metadata=_METADATA,
        clock=st.sampled_from([1, 1, 1, 7, -5, -300]),
    )
    def put(
        self,
        pick: int,
        thread: str,
        ns: str,
        parent: int,
        change: Mapping[str, Any],
        emptied: set[str],
        left_out: set[str],
        metadata: Mapping[str, Any],
        clock: int,
    ) -> None:
        """Put a child of any checkpoint, or a first one; the clock may have been set back."""
        self._clock += clock
        checkpoint_id = self._expected.unused_id(thread, ns, self._clock)
        above = self._expected.pick(thread, ns, parent)
        held = above.values if above else {}
        versions = {**(above.versions if above else {})}
        new = {channel: versions.get(channel, 0) + 1 for channel in {*change, *emptied}}
        versions |= new
        values = {
            channel: value for channel, value in {**held, **change}.items() if channel not in emptied - set(change)
        }
        present = {channel: value for channel, value in values.items() if channel in change or channel not in left_out}
        made = checkpoint(present, versions, checkpoint_id=checkpoint_id)
        where = at(thread, ns, above.id if above else None)
        placed = self._do(self._savers[pick % 3].aput(where, made, metadata, new))
        assert placed == at(thread, ns, checkpoint_id)
        self._expected.put(thread, ns, Kept(checkpoint_id, above, values, versions, dict(metadata)))

    @rule(pick=_PICKS, thread=_THREADS, ns=_NAMESPACES, which=_PICKS, task=_TASKS, writes=_WRITES)
    def put_writes(self, pick: int, thread: str, ns: str, which: int, task: str, writes: list[tuple[str, Any]]) -> None:
        """Put a task's writes for any checkpoint."""
        kept = self._expected.pick(thread, ns, which)
        if kept is not None:
            self._do(self._savers[pick % 3].aput_writes(at(thread, ns, kept.id), writes, task))
            self._expected.put_writes(kept, writes, task)

    @rule(pick=_PICKS, thread=_THREADS)
    def delete_thread(self, pick: int, thread: str) -> None:
        """Delete a thread, and check that a late write is refused."""
        gone = self._expected.all_of(thread)
        self._do(self._savers[pick % 3].adelete_thread(thread))
        self._expected.delete_thread(thread)
        for kept in gone[:2]:
            try:
                self._do(self._savers[(pick + 1) % 3].aput_writes(at(thread, kept.ns, kept.id), [("x", 1)], "late"))
            except ThreadDeletedError:
                continue
            raise AssertionError("a late write was taken")

    @rule(pick=_PICKS, thread=_THREADS, ns=_NAMESPACES, which=_PICKS)
    def delete_checkpoint(self, pick: int, thread: str, ns: str, which: int) -> None:
        """Delete any checkpoint, once."""
        kept = self._expected.pick(thread, ns, which)
        if kept is not None:
            saver = self._savers[pick % 3]
            assert self._do(saver.adelete_checkpoint(at(thread, ns, kept.id))) is True
            self._expected.keep(lambda other: (other.thread, other.ns, other.id) != (thread, ns, kept.id))
            assert self._do(saver.adelete_checkpoint(at(thread, ns, kept.id))) is False

    @rule(pick=_PICKS)
    def delete_for_runs(self, pick: int) -> None:
        """Delete a run's checkpoints."""
        self._do(self._savers[pick % 3].adelete_for_runs(["r"]))
        self._expected.keep(lambda kept: kept.metadata.get("run_id") != "r")

    @rule(pick=_PICKS, thread=_THREADS, keep_last=st.integers(1, 4))
    def prune(self, pick: int, thread: str, keep_last: int) -> None:
        """Prune a thread; a dry run before must report the same."""
        saver = self._savers[pick % 3]
        would = self._do(saver.aprune([thread], keep_last=keep_last, dry_run=True))
        did = self._do(saver.aprune([thread], keep_last=keep_last))
        assert did == would
        doomed = self._expected.older(thread, keep_last)
        assert did.checkpoints == len(doomed)
        assert did.writes == sum(len(kept.writes) for kept in doomed)
        self._expected.keep(lambda kept: kept not in doomed)
        assert self._do(saver.aprune([thread], keep_last=keep_last, dry_run=True)).segments == 0

    @rule(pick=_PICKS, source=_THREADS, onto=_THREADS)
    def copy_thread(self, pick: int, source: str, onto: str) -> None:
        """Copy a thread onto itself, or to a thread without checkpoints."""
        if source == onto or not self._expected.all_of(onto):
            self._do(self._savers[pick % 3].acopy_thread(source, onto))
            self._expected.copy_thread(source, onto)

    @rule(
        pick=_PICKS,
        thread=st.none() | _THREADS,
        ns=st.none() | _NAMESPACES,
        criteria=st.sampled_from([None, {}, {"k": 1}, {"k": True}, {"k": None}, {"k": [1]}, {"run_id": "r"}]),
        limit=st.none() | st.integers(0, 5),
        before=st.none() | _PICKS,
    )
    def list_some(
        self,
        pick: int,
        thread: str | None,
        ns: str | None,
        criteria: Mapping[str, Any] | None,
        limit: int | None,
        before: int | None,
    ) -> None:
        """List with any of filter, before and limit."""
        expected = self._expected.newest_first(thread, ns if thread is not None else None)
        options: dict[str, Any] = {"filter": criteria, "limit": limit}
        if before is not None and expected and thread is not None and ns is not None:
            position = before % len(expected)
            options["before"] = at(thread, ns, expected[position].id)
            expected = expected[position + 1 :]
        expected = [kept for kept in expected if matches(kept.metadata, criteria or {})][:limit]
        found = self._do(listed(self._savers[pick % 3], at(thread, ns) if thread is not None else None, **options))
        assert [_seen(item) for item in found] == [kept.seen() for kept in expected]

    @rule(pick=_PICKS, thread=_THREADS, ns=_NAMESPACES, which=_PICKS)
    def get(self, pick: int, thread: str, ns: str, which: int) -> None:
        """Get any checkpoint by its id, and the newest one without an id."""
        saver = self._savers[pick % 3]
        self._compare(saver, at(thread, ns), self._expected.newest(thread, ns))
        if (kept := self._expected.pick(thread, ns, which)) is not None:
            self._compare(saver, at(thread, ns, kept.id), kept)

    @rule(pick=_PICKS)
    def verify(self, pick: int) -> None:
        """Check that everything is readable, and that nothing is stored without need."""
        verified = self._do(self._savers[pick % 3].averify(decode=True))
        expected = self._expected.newest_first(None, None)
        assert verified.problems == verified.unreadable == []
        assert verified.checkpoints == len(expected)
        assert verified.writes == sum(len(kept.writes) for kept in expected)

    @precondition(lambda self: hasattr(self, "_world"))
    @invariant()
    def every_saver_sees_the_same(self) -> None:
        """Check that everything reads as expected."""
        expected = [kept.seen() for kept in self._expected.newest_first(None, None)]
        saver = self._savers[self._clock % 3]
        assert [_seen(item) for item in self._do(listed(saver, None))] == expected

    def _compare(self, saver: Saver, config: dict[str, Any], kept: Kept | None) -> None:
        found = self._do(saver.aget_tuple(config))
        assert (found and _seen(found)) == (kept and kept.seen())

    def _do(self, call: Any) -> Any:
        return self._runner.run(call)


def _seen(item: CheckpointTuple) -> dict[str, Any]:
    """Return the parts of a checkpoint that the model compares."""
    return {
        "config": item.config,
        "parent": item.parent_config["configurable"]["checkpoint_id"] if item.parent_config else None,
        "values": item.checkpoint["channel_values"],
        "versions": item.checkpoint["channel_versions"],
        "metadata": repr(item.metadata),
        "writes": item.pending_writes,
    }
