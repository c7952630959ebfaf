"""With a keyring, rows of another life of a thread do not open: put back, or left of a thread that seems to be gone."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

import backends
import postgres.backends
import redis_backend.backends
from redis_backend import cluster, processes
from threadmark import Conversations, CorruptDataError, Saver, ThreadmarkError
from threadmark.format.incarnations import Incarnation, KnownIncarnations
from threadmark.memory.driver import MemoryDriver
from threadmark.program import Program, Transaction
from threadmark.sealing import Keyring
from threadmark.store.contract import ANYONE, Change, Scope, Store
from threadmark.store.threads import ThreadOutline, ThreadRow
from threadmark_conformance import Opener
from threadmark_conformance.engine import at, checkpoint
from threadmark_postgres import PostgresSaver
from threadmark_postgres import steps as on_postgres
from threadmark_sqlite import SqliteSaver
from threadmark_sqlite import steps as on_sqlite

KEYRING = Keyring({"key": bytes(range(32))}, "key", digest_secret=bytes(32))
SECRET = "what Ada tells nobody " * 20
BACKENDS = {
    "memory": backends.memory,
    "sqlite file": backends.sqlite_file,
    "postgres": postgres.backends.from_url,
    "redis": redis_backend.backends.BACKENDS["single"],
    "redis cluster": redis_backend.backends.BACKENDS["cluster"],
}


@pytest.fixture(params=BACKENDS)
def open_saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    with BACKENDS[request.param](tmp_path) as opened, ExitStack() as savers:
        # The openers of the tests' own backends take every option of a saver; the protocol names the suite's one.
        with_options: Any = opened
        yield lambda **options: savers.enter_context(with_options(keyring=KEYRING, **options))


class Below:
    """The database under a saver, for someone who has no key."""

    def __init__(self, saver: Saver) -> None:
        self._driver = saver._driver
        self._store: Store = saver._store  # below the sealing store

    def thread(self) -> ThreadRow:
        """The thread's row as it is stored."""
        outline: ThreadOutline = self._run(lambda store: store.thread("thread"))
        return outline.row

    def put_back(self, row: ThreadRow) -> None:
        self._run(lambda store: _locked(store, lambda: store.set_thread(row)))

    def rows(self) -> "Rows":
        """All that belongs to the thread."""
        rows: Rows = self._run(_rows)
        return rows

    def add(self, rows: "Rows") -> None:
        self._run(partial(_add, rows))

    def _run(self, program: Callable[[Store], Program[Any]]) -> Any:
        return self._driver.run(Transaction(program, (self._store,), writes=True))


class Rows(NamedTuple):
    checkpoints: Any
    writes: Any
    segments: Any


def _locked(store: Store, change: Callable[[], Program[None]]) -> Program[None]:
    yield from store.lock("thread")
    yield from change()


def _rows(store: Store) -> Program[Rows]:
    outlines = yield from store.page(Scope("thread"), None, 1000)
    checkpoints = yield from store.rows("thread", [outline.key for outline in outlines])
    writes = yield from store.writes("thread", None)
    sizes = yield from store.segment_sizes("thread")
    return Rows(checkpoints, writes, (yield from store.segments("thread", list(sizes))))


def _add(rows: Rows, store: Store) -> Program[None]:
    yield from store.lock("thread")
    change = Change("thread", None, 1, rows.segments, rows.checkpoints, rows.writes, None, token=ANYONE)
    yield from store.replace(change)


def put(saver: Saver, value: str, parent: Any = None) -> Any:
    """Store a step of the thread with its pending write. Returns its config."""
    config = saver.put(parent or at("thread"), checkpoint({"text": value}), {"note": value}, {"text": value})
    saver.put_writes(config, [("text", value)], f"task of {value[:9]}")
    return config


def seen_by(view: Saver, *configs: Any) -> str:
    """All that a view answers about the thread, and the messages of the errors that it raises."""
    conversations = Conversations(view)
    calls: list[Callable[[], Any]] = [
        lambda: view.get_tuple(at("thread")),
        *(partial(view.get_tuple, config) for config in configs),
        lambda: list(view.list(at("thread"))),
        lambda: view.history("thread").entries,
        lambda: view.tree("thread").nodes,
        lambda: view.search("thread", "Ada").matches,
        lambda: view.extract("thread", "text"),
        lambda: conversations.get_messages({"thread_id": "thread"}),
        lambda: view.copy_thread("thread", "stolen") and list(view.list(at("stolen"))),
        lambda: view.fork(at("thread"), as_thread="forked") and view.get_tuple(at("forked")),
        lambda: asyncio.run(view.aget_tuple(at("thread"))),
    ]
    answers = []
    for call in calls:
        try:
            answers.append(repr(call()))
        except ThreadmarkError as error:
            answers.append(str(error))
    return "\n".join(answers)


def test_the_row_from_before_a_hand_over_shows_nothing_that_was_stored_after_it(open_saver: Opener) -> None:
    saver, worker, cold = open_saver(), open_saver(), open_saver()
    first = put(saver.for_owner("eve"), "hers")
    mine = put(worker, "hers too", first)  # this process remembers the thread as Eve's
    before = Below(saver).thread()
    saver.update_thread("thread", owner="ada")
    last = put(worker, SECRET, mine)
    last = put(saver.for_owner("ada"), SECRET, last)
    for view in (saver, worker, cold):
        ada = view.for_owner("ada").get_tuple(at("thread"))
        assert ada is not None
        assert ada.checkpoint["channel_values"] == {"text": SECRET}
    assert saver.verify().problems == []
    Below(saver).put_back(before)
    for reader in (saver, worker, cold, open_saver()):
        assert SECRET[:20] not in seen_by(reader.for_owner("eve"), last)
        with pytest.raises(CorruptDataError, match=r"another life of the thread, or under a later owner.*put back"):
            reader.for_owner("eve").get_tuple(at("thread"))
    assert any("another life" in problem.problem for problem in cold.verify().problems)
    # The thread is mended by giving it to its owner again.
    assert cold.update_thread("thread", owner="ada", title=None, metadata={}, expires_at=None).owner == "ada"


def test_the_row_from_before_a_deletion_shows_nothing_of_the_thread_that_has_its_id_now(open_saver: Opener) -> None:
    saver, cold = open_saver(), open_saver()
    put(saver.for_owner("eve"), "hers")
    before = Below(saver).thread()
    saver.delete_thread("thread")
    last = put(cold.for_owner("ada"), SECRET)
    Below(saver).put_back(before)
    for reader in (saver, cold, open_saver()):
        assert SECRET[:20] not in seen_by(reader.for_owner("eve"), last)
        with pytest.raises(CorruptDataError, match="another life of the thread"):
            reader.for_owner("eve").get_tuple(at("thread"))
    assert any("another life" in problem.problem for problem in cold.verify().problems)


def test_rows_of_a_deleted_thread_do_not_open_for_whom_the_id_begins_again(open_saver: Opener) -> None:
    saver, other = open_saver(), open_saver()
    ada = saver.for_owner("ada")
    last = put(ada, SECRET, put(ada, SECRET))
    Conversations(ada).put_messages({"thread_id": "thread"}, [{"role": "user", "content": SECRET}])
    kept = Below(saver).rows()
    assert kept.checkpoints
    assert kept.writes
    assert kept.segments
    saver.delete_thread("thread")
    eve = other.for_owner("eve")
    put(eve, "hers")
    Below(saver).add(kept)
    for reader in (saver, other, open_saver()):
        assert SECRET[:20] not in seen_by(reader.for_owner("eve"), last)
        with pytest.raises(CorruptDataError, match="another life of the thread"):
            reader.for_owner("eve").get_tuple(last)
        problems = reader.verify().problems
        assert any("another life" in problem.problem for problem in problems), problems


def test_a_thread_that_was_made_to_look_deleted_is_not_read_by_whom_its_id_begins_for(open_saver: Opener) -> None:
    saver, other = open_saver(), open_saver()
    last = put(saver.for_owner("ada"), SECRET)
    Conversations(saver.for_owner("ada")).put_messages({"thread_id": "thread"}, [{"role": "user", "content": SECRET}])
    hide(saver)
    assert saver.get_thread("thread") is None
    other.for_owner("eve").put(at("thread"), checkpoint({"text": "hers"}), {}, {"text": 1})
    for reader in (saver, other, open_saver()):
        assert SECRET[:20] not in seen_by(reader.for_owner("eve"), last)
    assert any("another life" in problem.problem for problem in open_saver().verify().problems)


def hide(saver: Any) -> None:
    """Let the thread's row say that the thread is not there."""
    driver = saver._driver
    if isinstance(driver, MemoryDriver):
        assert driver._tables is not None
        driver._tables.threads["thread"].state["live"] = False
    elif isinstance(saver, SqliteSaver):
        statement = "UPDATE threadmark_thread SET live = 0"
        driver.run(Transaction(on_sqlite.execute, (statement,), writes=True))
    elif isinstance(saver, PostgresSaver):
        statement = f"UPDATE {cast('Any', saver._store)._schema}.threadmark_thread SET live = false"
        driver.run(Transaction(on_postgres.execute, (statement,), writes=True))
    else:
        for master in (processes.shared(), *cluster.shared().masters):
            for key in master.command("KEYS", "*}h"):
                master.command("HSET", key, "v", "0")


def test_a_process_that_remembers_another_life_goes_on_in_the_new_one(open_saver: Opener) -> None:
    saver, other = open_saver(), open_saver()
    first = put(saver, "first")
    other.delete_thread("thread")
    put(other, "second life")
    found = saver.get_tuple(at("thread"))
    assert found is not None
    assert found.checkpoint["channel_values"] == {"text": "second life"}
    last = put(saver, "its next step", found.config)
    saver.prune(["thread"], keep_last=1)
    other.put_writes(last, [("text", "late")], "late task")
    found = other.get_tuple(at("thread"))
    assert found is not None
    assert len(found.pending_writes or []) == 2
    assert open_saver().verify().problems == []
    assert first != last


def test_a_life_is_remembered_after_it_was_read_and_not_as_it_begins(open_saver: Opener) -> None:
    """A transaction that begins a thread may fail, and another one begin it in the same epoch.

    Then what the first one remembered last would be taken for the life of that epoch, and rows that are sealed for it
    would never open again.
    """
    saver = open_saver()
    saver.setup()
    known: KnownIncarnations = cast("Any", saver._context.store)._known
    stored = saver.put(at("thread"), checkpoint({"a": 1}), {}, {"a": 1})
    assert known.get("thread") is None
    saver.put_writes(stored, [("a", 2)], "task")
    assert known.get("thread") is not None
    saver.create_thread("created", owner="ada")
    assert known.get("created") is None
    for each in (saver, open_saver()):
        found = each.get_tuple(at("thread"))
        assert found is not None
        assert found.pending_writes == [("task", "a", 2)]


@pytest.mark.parametrize("deletes", ["the same process", "another process"])
def test_a_thread_that_begins_again_with_values_of_before_is_one_life(open_saver: Opener, deletes: str) -> None:
    saver = open_saver()
    put(saver, SECRET)  # its next put counts on the segments of this one, and on their epoch
    (saver if deletes == "the same process" else open_saver()).delete_thread("thread")
    last = put(saver, SECRET)
    last = put(saver, SECRET + "more", last)
    for reader in (saver, open_saver()):
        found = list(reader.list(at("thread")))
        assert [each.checkpoint["channel_values"]["text"] for each in found] == [SECRET + "more", SECRET]
        assert [len(each.pending_writes or []) for each in found] == [1, 1]
        assert reader.verify().problems == []


def test_a_damaged_row_of_a_thread_is_named_and_mended_by_its_owner_and_all_else(open_saver: Opener) -> None:
    saver = open_saver()
    put(saver.for_owner("ada"), "kept")
    below = Below(saver)
    row = below.thread()
    below.put_back(row._replace(check=bytes([*row.check[:-1], row.check[-1] ^ 1])))
    cold = open_saver()
    with pytest.raises(CorruptDataError, match="thread 'thread'"):
        cold.get_tuple(at("thread"))
    assert any("thread 'thread'" in problem.location for problem in cold.verify().problems)
    cold.update_thread("thread", owner="ada", title=None, metadata={}, expires_at=None)
    for reader in (cold, open_saver()):
        found = reader.for_owner("ada").get_tuple(at("thread"))
        assert found is not None
        assert found.checkpoint["channel_values"] == {"text": "kept"}
        assert reader.verify().problems == []


def test_what_is_known_of_threads_is_bounded() -> None:
    known = KnownIncarnations(lambda _: None)
    for number in range(5000):
        known.note(str(number), number, Incarnation.begun(), is_committed=True)
    assert known.get("0") is None
    assert known.get("4999") is not None
    assert len(known._found) < 5000


def test_a_row_belongs_to_its_life_and_not_to_a_later_owner() -> None:
    life = Incarnation.begun()
    assert Incarnation.unpacked(life.packed()) == life
    later = life.next_owner()
    assert later.covers(life)
    assert not life.covers(later)
    assert not Incarnation.begun().covers(life)
    assert not life.covers(None)
    for _ in range(70_000):
        later = later.next_owner()
    assert later.covers(Incarnation.unpacked(later.packed()))
