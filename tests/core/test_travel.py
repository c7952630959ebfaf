"""Details of time travel: cursors, long threads, circles, and events between a fork's two transactions."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from threadmark import CheckpointNotFoundError, ConfigError, Conversations, CorruptDataError, MemorySaver, new_id
from threadmark.program import Transaction
from threadmark.saver.paging import new_cursor
from threadmark.saver.proving import checkpoint_row
from threadmark.store.contract import Scope, Store
from threadmark.travel.history import entries_of
from threadmark_conformance.engine import at, checkpoint, early_id

LONG = "what stands in a segment of its own. " * 20


def _put(saver: MemorySaver, number: int, parent: str | None = None, thread: str = "thread") -> dict[str, Any]:
    made = checkpoint({"n": number, "text": f"{number}{LONG}"}, {"n": number, "text": number}, checkpoint_id=new_id())
    return saver.put(at(thread, "", parent), made, {"step": number}, {"n": number, "text": number})


def _change(saver: MemorySaver, change: Callable[[Store], Any]) -> None:
    """Change the rows as no saver does."""
    saver._driver.run(Transaction(lambda: change(saver._context.store), writes=True))


@pytest.mark.parametrize("cursor", ["", "no cursor", new_cursor("rank"), new_cursor(1, ""), new_cursor("", "", "")])
def test_what_is_no_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(ConfigError, match="is no cursor"):
        MemorySaver().history("thread", cursor=cursor)


@pytest.mark.parametrize("arguments", [{"limit": -1}, {"limit": True}, {"ns": 1}, {"thread": None}, {"cursor": 1}])
def test_odd_arguments_of_a_history_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        MemorySaver().history(**{"thread": "thread", **arguments})


def test_a_long_history_and_a_long_tree_are_whole() -> None:
    saver = MemorySaver()
    ids = [early_id(number) for number in range(1300)]
    for number, checkpoint_id in enumerate(ids):
        made = checkpoint({"n": number}, checkpoint_id=checkpoint_id)
        saver.put(at("thread", "", ids[number - 1] if number else None), made, {"step": number}, {"n": 1})
    Conversations(saver).put_messages({"thread_id": "thread"}, [{"id": str(number)} for number in range(600)])
    page = saver.history("thread", ns=None, limit=10**30)
    assert [entry.id for entry in page.entries] == ids[::-1]
    assert page.cursor is None
    exact = saver.history("thread", ns=None, limit=1300)
    assert (len(exact.entries), exact.cursor) == (1300, None)
    part = saver.history("thread", ns=None, limit=1299)
    assert part.cursor is not None
    assert [entry.id for entry in saver.history("thread", cursor=part.cursor).entries] == ids[:1]
    tree = saver.tree("thread")
    assert [(branch.checkpoints, branch.head, branch.start) for branch in tree.branches] == [(1300, ids[-1], ids[0])]


def test_a_circle_of_parents_ends() -> None:
    """Only damage with right checks can make one."""
    saver = MemorySaver()
    first = _put(saver, 1)
    second = _put(saver, 2, first["configurable"]["checkpoint_id"])
    names = [config["configurable"]["checkpoint_id"] for config in (first, second)]

    def tie(store: Store) -> Any:
        (row,) = yield from store.rows("thread", [("", names[0])])
        yield from store.rewrite("thread", [checkpoint_row(row.outline._replace(parent=names[1]), row.header, None)])

    _change(saver, tie)
    assert sorted(node.id for node in saver.tree("thread").nodes) == sorted(names)
    assert [branch.checkpoints for branch in saver.tree("thread").branches] == [2]
    assert len(saver.history("thread").entries) == 2
    saver.fork(second, as_thread="copy")
    assert len(saver.history("copy").entries) == 2


def test_what_was_removed_since_it_was_listed_is_left_out() -> None:
    saver = MemorySaver()
    first = _put(saver, 1)
    second = _put(saver, 2, first["configurable"]["checkpoint_id"])
    store = saver._context.store
    outlines = saver._driver.run(Transaction(lambda: store.page(Scope("thread"), None, 9), writes=False))
    saver.delete_checkpoint(first)
    reading = Transaction(lambda: entries_of(saver._context, "thread", outlines), writes=False)
    (entry,) = saver._driver.run(reading)
    assert (entry.id, entry.problem) == (second["configurable"]["checkpoint_id"], None)


class Meddling(MemorySaver):
    """Lets something happen after the first transaction of the next operation."""

    def __init__(self) -> None:
        super().__init__()
        self.meddle: Callable[[], object] | None = None
        run = self._driver.run

        def meddled(transaction: Transaction[Any]) -> Any:
            result = run(transaction)
            meddle, self.meddle = self.meddle, None
            if meddle is not None:
                meddle()
            return result

        self._driver.run = meddled  # type: ignore[method-assign]  # to come between two transactions


@pytest.mark.parametrize("target", [None, "copy"])
def test_a_fork_begins_again_where_rows_were_removed_meanwhile(target: str | None) -> None:
    saver = Meddling()
    configs = [_put(saver, 0)]
    for number in range(1, 4):
        configs.append(_put(saver, number, configs[-1]["configurable"]["checkpoint_id"]))
    saver.meddle = lambda: saver.prune(["thread"], keep_last=2)
    made = saver.fork(configs[2], {"n": "new"}, as_thread=target)
    found = saver.get_tuple(made)
    assert found is not None
    assert found.checkpoint["channel_values"] == {"n": "new", "text": f"2{LONG}"}
    assert len(saver.history(made).entries) == (3 if target is None else 2)
    assert saver.verify(decode=True).problems == []


@pytest.mark.parametrize("target", [None, "copy"])
def test_a_fork_of_what_is_removed_meanwhile_is_refused(target: str | None) -> None:
    saver = Meddling()
    first = _put(saver, 0)
    _put(saver, 1, first["configurable"]["checkpoint_id"])
    saver.meddle = lambda: saver.prune(["thread"])
    with pytest.raises(CheckpointNotFoundError, match=first["configurable"]["checkpoint_id"]):
        saver.fork(first, as_thread=target)
    saver.meddle = lambda: saver.delete_thread("thread")
    with pytest.raises(CheckpointNotFoundError, match="thread 'thread'"):
        saver.fork(at("thread"), as_thread=target)
    assert saver.count_threads() == 0


def test_a_fork_comes_behind_a_put_that_came_between() -> None:
    saver = Meddling()
    first = _put(saver, 0)
    far = "zz, an id of a clock that was set forward"
    saver.meddle = lambda: saver.put(first, checkpoint({"n": 1}, {"n": 1}, checkpoint_id=far), {}, {"n": 1})
    made = saver.restore(first) if saver.fork(first) else first
    newest = saver.get_tuple(at("thread"))
    assert newest is not None
    assert newest.config == made
    assert [entry.id == far for entry in saver.history("thread").entries] == [False, False, True, False]


def test_a_missing_segment_of_an_ancestor_is_not_copied() -> None:
    saver = MemorySaver(cache_bytes=0)
    first = _put(saver, 0)
    saver.put_writes(first, [("text", "another" + LONG)], "task")
    second = checkpoint({"n": 1}, {"n": 1}, checkpoint_id=new_id())
    config = saver.put(first, second, {}, {"n": 1})

    def lose(store: Store) -> Any:
        sizes = yield from store.segment_sizes("thread")
        yield from store.remove("thread", [], list(sizes))

    _change(saver, lose)
    with pytest.raises(CorruptDataError, match="a segment is missing"):
        saver.fork(config, as_thread="copy")
    assert saver.count_threads() == 1


def test_a_blame_of_what_is_removed_meanwhile_finds_what_is_left() -> None:
    saver = Meddling()
    configs = [_put(saver, 0)]
    for number in range(1, 4):
        values = {"n": number, "text": f"0{LONG}"}
        made = checkpoint(values, {"n": number, "text": 0}, checkpoint_id=new_id())
        configs.append(saver.put(configs[-1], made, {"step": number}, {"n": number}))
    saver.meddle = lambda: setattr(saver, "meddle", lambda: saver.delete_checkpoint(configs[0]))
    found = saver.blame("thread", "text")
    assert found is not None
    assert (found.entry.step, found.value) == (1, f"0{LONG}")
    saver.meddle = lambda: setattr(saver, "meddle", lambda: saver.delete_thread("thread"))
    assert saver.blame("thread", "text") is None


def test_a_blame_ends_where_parents_lead_back() -> None:
    """A second put of a checkpoint may name one as its parent that follows it."""
    saver = MemorySaver()
    ids = [early_id(1), early_id(2)]
    for number, parent in ((0, None), (1, ids[0]), (0, ids[1])):
        made = checkpoint({"n": 1}, {"n": 1}, checkpoint_id=ids[number])
        saver.put(at("thread", "", parent), made, {"step": number}, {"n": 1})
    found = saver.blame("thread", "n")
    assert found is not None
    assert found.entry.id == ids[1]


def test_a_time_that_is_damaged_spoils_neither_history_nor_tree() -> None:
    saver = MemorySaver()
    config = _put(saver, 1)

    def spoil(store: Store) -> Any:
        (row,) = yield from store.rows("thread", [("", config["configurable"]["checkpoint_id"])])
        outline: Any = row.outline._replace(created_at="x")  # type: ignore[arg-type]  # damage
        yield from store.rewrite("thread", [row._replace(outline=outline)])

    _change(saver, spoil)
    (node,), (entry,) = saver.tree("thread").nodes, saver.history("thread").entries
    assert node.created_at == entry.created_at == datetime(1970, 1, 1, tzinfo=UTC)
