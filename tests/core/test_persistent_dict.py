"""A persistent dictionary is a dict, and its contents at the last sync are in it when it is opened again."""

import copy
import pickle
import threading
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from children import child, finished
from length import times
from serde.sameness import same
from threadmark import (
    ClosedError,
    ConfigError,
    ForbiddenTypeError,
    PersistentDict,
    Serde,
    SerializationError,
    StoreError,
    TransientStoreError,
)
from threadmark.persistent import sql
from threadmark.persistent.entries import draft
from threadmark.persistent.storage import Flag

KEYS = (
    1,
    True,
    1.0,
    0,
    -0.0,
    "a",
    "b",
    "\ud800\0",
    b"a",
    ("a", 1),
    None,
    frozenset({1, 2}),
    datetime(2026, 1, 1, tzinfo=UTC),
)
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3) | st.binary(max_size=3)
)
VALUES = st.recursive(
    LEAVES | st.just(timedelta(1)) | st.sets(st.integers(0, 3)),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3) | st.tuples(inner)
    ),
    max_leaves=4,
)
FLAGS: tuple[Flag, ...] = ("w", "c", "n")
"""Those that write."""

KEY = st.sampled_from(KEYS)
STEPS = st.one_of(
    st.tuples(st.just("set"), KEY, VALUES),
    st.tuples(st.just("set"), KEY, VALUES),
    st.tuples(st.just("pop"), KEY, st.none()),
    st.tuples(st.just("to the end"), KEY, st.none()),
    st.tuples(st.just("inside"), KEY, VALUES),
    st.tuples(st.just("update"), st.none(), st.lists(st.tuples(KEY, VALUES), max_size=3)),
    st.tuples(st.sampled_from(["popitem", "clear", "reverse"]), st.none(), st.none()),
    st.tuples(st.sampled_from(["sync", "reopen", "crash", "new", "new and crash", "refused"]), st.none(), st.none()),
)


def change(here: dict[Any, Any], step: str, key: Any, value: Any) -> None:
    """One change, of a dict of any kind."""
    if step == "set":
        here[key] = value
    elif step == "pop":
        here.pop(key, None)
    elif step == "to the end" and key in here:
        here[key] = here.pop(key)
    elif step == "inside" and isinstance(here.get(key), list):
        here[key].append(value)
    elif step == "update":
        here.update(value)
    elif step == "popitem" and here:
        here.popitem()
    elif step == "clear":
        here.clear()
    elif step == "reverse":
        items = list(here.items())[::-1]
        here.clear()
        here.update(items)


def lose(opened: PersistentDict[Any, Any]) -> None:
    """Close the file with nothing stored, as the end of a process does."""
    opened._storage.close()


@settings(deadline=None, max_examples=times(25, at_length=2000))
@given(st.lists(STEPS, max_size=30))
def test_whatever_is_done_it_has_what_a_dict_has_and_the_file_what_it_had_at_the_last_sync(steps: list[Any]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "cache.db"
        opened: PersistentDict[Any, Any] = PersistentDict(path)
        model: dict[Any, Any] = {}
        stored: dict[Any, Any] = {}
        for step, key, value in steps:
            change(opened, step, key, copy.deepcopy(value))
            change(model, step, key, copy.deepcopy(value))
            if step == "refused":
                opened["no"] = threading.Lock()
                with pytest.raises(SerializationError, match="key 'no'"):
                    opened.sync()
                del opened["no"]
            if step == "sync":
                opened.sync()
            elif step == "reopen":
                opened.close()
                opened = PersistentDict(path, "w")
            elif step in ("crash", "new and crash"):
                lose(opened)
                if step == "new and crash":
                    lose(PersistentDict(path, "n"))
                opened, model = PersistentDict(path), copy.deepcopy(stored)
            elif step == "new":
                lose(opened)
                opened, model = PersistentDict(path, "n"), {}
                opened.sync()
            if step in ("sync", "reopen", "new"):
                stored = copy.deepcopy(model)
            assert same(list(opened.items()), list(model.items()))
            assert same(list(PersistentDict(path, "r").items()), list(stored.items()))
        lose(opened)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache.db"


def test_it_is_a_mutable_mapping_and_a_dict(path: Path) -> None:
    with PersistentDict[str, list[int]](path) as opened:
        assert isinstance(opened, MutableMapping)
        opened |= {"a": [1], "b": [2]}
        assert opened == {"a": [1], "b": [2]}
        assert repr(opened) == "{'a': [1], 'b': [2]}"
        others = (opened | {"c": 1}, {} | opened, opened.copy(), copy.copy(opened), copy.deepcopy(opened))
        pickled = pickle.loads(pickle.dumps(opened))  # noqa: S301 - it was made here
        assert [type(each) for each in (*others, pickled)] == [dict] * 6
        assert pickled == opened
        deep = copy.deepcopy(opened)
        deep["a"].append(5)
        assert opened["a"] == [1]


def test_no_method_of_a_dict_that_can_be_written_is_replaced() -> None:
    own = {name for name in vars(PersistentDict) if name in vars(dict)}
    assert own == {"__new__", "__init__", "__doc__"}


def test_a_sync_writes_what_differs_and_nothing_else(path: Path) -> None:
    with PersistentDict[int, Any](path) as opened:
        opened.update((number, {"n": [number]}) for number in range(1_000))
        opened.sync()
        for number in range(5):
            opened[number * 100]["n"].append("more")
        del opened[999]
        opened["new"] = 1  # type: ignore[index]  # the key of a cache may be anything
        made = draft(opened._storage._settled, opened.items(), Serde())
        assert (len(made.rows), len(made.gone)) == (6, 1)
        opened.sync()
        again = draft(opened._storage._settled, opened.items(), Serde())
        assert (again.rows, again.gone) == ([], [])


def test_a_sync_with_nothing_to_store_leaves_the_file_as_it_is(path: Path) -> None:
    with PersistentDict[str, int](path) as opened:
        opened["a"] = 1
        opened.sync()
        before = (path.read_bytes(), path.stat().st_mtime_ns)
        opened.sync()
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_what_was_deleted_or_replaced_is_nowhere_in_the_file(path: Path) -> None:
    with PersistentDict[str, Any](path) as opened:
        opened.update((f"secret {number}", f"confidential {number}" * 1000) for number in range(100))
        opened.sync()
        assert path.stat().st_size > 1_000_000
        opened.clear()
        opened["one"] = "confidential"
        opened.sync()
        opened["one"] = "public"
        opened.sync()
        assert path.stat().st_size < 50_000
        assert b"confidential" not in path.read_bytes()
        assert b"secret" not in path.read_bytes()


def test_a_closed_dictionary_is_one_file_and_stays_readable(path: Path) -> None:
    opened = PersistentDict[str, int](path)
    opened["a"] = 1
    opened.close()
    opened.close()
    assert [each.name for each in path.parent.iterdir()] == ["cache.db"]
    assert opened == {"a": 1}
    calls: list[Callable[[], object]] = [
        *(opened.sync, opened.clear, partial(opened.pop, "a"), partial(opened.__delitem__, "a")),
        *(partial(opened.__setitem__, "b", 2), partial(opened.update, b=2), partial(opened.setdefault, "b", 2)),
    ]
    for call in calls:
        with pytest.raises(ClosedError, match=r"cache\.db' was closed: open it again"):
            call()
    assert opened == {"a": 1}


def test_a_block_that_fails_stores_what_was_done_in_it(path: Path) -> None:
    with suppress(LookupError), PersistentDict[str, int](path) as opened:
        opened["a"] = 1
        raise LookupError
    assert PersistentDict(path, "r") == {"a": 1}


def test_one_that_nobody_holds_any_more_is_stored_and_closed(path: Path) -> None:
    opened = PersistentDict[str, int](path)
    opened["a"] = 1
    del opened
    with PersistentDict[str, int](path) as again:
        assert again == {"a": 1}


_ENDINGS = {
    "the end of the program": "",
    "sys.exit": "sys.exit()",
    "a function": "def work():\n    PersistentDict(path)['of a function'] = 1\ndel kept\nwork()",
}


@pytest.mark.parametrize("ending", _ENDINGS)
def test_what_a_program_did_not_close_is_stored_when_it_ends(path: Path, ending: str) -> None:
    begin = "import sys\nfrom threadmark import PersistentDict\npath = sys.argv[1]\nkept = PersistentDict(path)\n"
    assert finished(child(f"{begin}kept['a'] = [1]\n{_ENDINGS[ending]}", path)) == ""
    assert PersistentDict[str, Any](path, "r")["a"] == [1]
    assert [each.name for each in path.parent.iterdir()] == ["cache.db"]


def test_what_cannot_be_stored_at_the_end_is_told(path: Path) -> None:
    process = child(
        "import sys\nfrom threadmark import PersistentDict\nkept = PersistentDict(sys.argv[1])\nkept['secret'] = open",
        path,
    )
    _, told = process.communicate(timeout=120)
    assert "cache.db: the program has ended, and the last changes are lost: " in told
    assert "secret" not in told.partition("\n")[0]


MUTATORS: dict[str, Callable[[Any], object]] = {
    "d[k] = v": lambda d: d.__setitem__("a", 2),
    "del d[k]": lambda d: d.__delitem__("a"),
    "|=": lambda d: d.__ior__({"b": 1}),
    "clear": lambda d: d.clear(),
    "pop": lambda d: d.pop("a"),
    "popitem": lambda d: d.popitem(),
    "setdefault": lambda d: d.setdefault("b", 1),
    "update": lambda d: d.update(b=1),
    "sync": lambda d: d.sync(),
}


@pytest.mark.parametrize("name", MUTATORS)
def test_one_that_is_only_read_refuses_every_change(name: str, path: Path) -> None:
    with PersistentDict[str, int](path) as opened:
        opened["a"] = 1
    before = path.read_bytes()
    with PersistentDict[str, int](path, "r") as reader:
        with pytest.raises(StoreError, match="opened with flag 'r'"):
            MUTATORS[name](reader)
        assert reader == {"a": 1}
    assert path.read_bytes() == before


def test_every_method_of_a_dict_that_changes_it_is_refused_by_one_that_is_only_read(path: Path) -> None:
    PersistentDict(path).close()
    kind: type = type(PersistentDict[str, int](path, "r"))
    changing = {name for name in vars(MutableMapping).keys() & vars(dict).keys() if name != "__doc__"} | {"__ior__"}
    assert len(changing) == 8
    assert changing <= {name for each in kind.__mro__[:2] for name in vars(each)}


class Mine(PersistentDict[str, int]):
    """A subclass of the user's."""

    def total(self) -> int:
        return sum(self.values())


def test_a_subclass_is_kept_by_every_flag(path: Path) -> None:
    with Mine(path) as opened:
        opened["a"] = 2
    for flag in ("r", "w", "c"):
        with Mine(path, flag) as again:
            assert isinstance(again, Mine)
            assert again.total() == 2


def test_readers_see_the_last_sync_while_it_is_open_for_writing(path: Path) -> None:
    with PersistentDict[str, int](path) as opened:
        opened["a"] = 1
        opened.sync()
        opened["a"] = 2
        assert PersistentDict(path, "r") == {"a": 1}
        opened.sync()
        assert PersistentDict(path, "r") == {"a": 2}


_OTHER = """
import sys
from threadmark import PersistentDict, TransientStoreError
for flag in "wcn":
    try:
        PersistentDict(sys.argv[1], flag)
    except TransientStoreError:
        print(flag)
"""


def test_only_one_has_it_open_for_writing(path: Path) -> None:
    link = path.with_name("link.db")
    link.symlink_to(path)
    with PersistentDict[str, int](path) as opened:
        opened["a"] = 1
        for name in (path, link):
            for flag in FLAGS:
                with pytest.raises(TransientStoreError, match="open for writing already"):
                    PersistentDict(name, flag)
        assert finished(child(_OTHER, path)).split() == [*FLAGS]
        path.read_bytes()  # closing the file here takes the locks of this process away, and none matters
        assert finished(child(_OTHER, path)).split() == [*FLAGS]
        opened.sync()
    for flag in FLAGS:
        PersistentDict(path, flag).close()


def test_a_link_in_the_place_of_the_lock_is_refused(path: Path, tmp_path: Path) -> None:
    with PersistentDict[str, int](path) as opened:
        opened["n"] = 1
    lock, target = Path(f"{path}-lock"), tmp_path / "planted"
    lock.symlink_to(target)
    with pytest.raises(StoreError, match="is a link"):
        PersistentDict(path)
    assert not target.exists()
    lock.unlink()
    target.touch()
    lock.hardlink_to(target)
    with pytest.raises(StoreError, match="second name"):
        PersistentDict(path)
    lock.unlink()
    with PersistentDict[str, int](path) as opened:
        assert opened == {"n": 1}


def test_many_that_open_and_close_it_come_one_after_the_other(path: Path) -> None:
    """The file of the lock is removed by the one that closes, just when others open it."""
    rounds = times(20, at_length=600)

    def count() -> None:
        done = 0
        while done < rounds:
            with suppress(TransientStoreError), PersistentDict[str, int](path) as opened:
                opened["n"] = opened.get("n", 0) + 1
                done += 1

    threads = [threading.Thread(target=count) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert PersistentDict(path, "r") == {"n": 3 * rounds}


def test_a_new_one_takes_the_place_of_the_old_one_at_the_first_sync(path: Path) -> None:
    with PersistentDict[str, int](path) as opened:
        opened.update(a=1, b=2)
    lose(PersistentDict(path, "n"))
    assert PersistentDict(path, "r") == {"a": 1, "b": 2}
    with PersistentDict[str, int](path, "n") as new:
        assert new == {}
        assert PersistentDict(path, "r") == {"a": 1, "b": 2}
        new["b"] = 2
        new.sync()
        assert PersistentDict(path, "r") == {"b": 2}
    PersistentDict(path, "n").close()
    assert PersistentDict(path, "r") == {}


def test_two_keys_that_would_come_back_as_one_are_refused(path: Path) -> None:
    with PersistentDict[Any, int](path) as opened:
        opened[float("nan")] = 1
        opened[float("nan")] = 2
        with pytest.raises(SerializationError, match="stored like another key"):
            opened.sync()
        opened.clear()


def test_what_is_too_large_for_one_entry_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with PersistentDict[str, str](path) as opened:
        opened["small"], opened["large"] = "x", "x" * 1000
        with monkeypatch.context() as patch:
            patch.setattr("threadmark.persistent.entries.LONGEST", 500)
            with pytest.raises(SerializationError, match="key 'large': it takes more than the 500 bytes"):
                opened.sync()
        assert PersistentDict(path, "r") == {}


def test_what_cannot_be_stored_is_named_and_nothing_of_that_sync_is_stored(path: Path) -> None:
    opened = PersistentDict[str, Any](path)
    opened["a"] = 1
    opened.sync()
    opened["a"], opened["b"] = 2, {"items": [1, threading.Lock()]}
    for call in (opened.sync, opened.close):
        with pytest.raises(SerializationError, match=r"cache\.db' -> key 'b' -> .*items.*\[1\]"):
            call()
        assert PersistentDict(path, "r") == {"a": 1}
    opened["b"] = "it stayed open"
    opened.close()
    assert PersistentDict(path, "r") == {"a": 2, "b": "it stayed open"}


def test_classes_are_allowed_by_the_serializer(path: Path) -> None:
    with PersistentDict[str, Any](path) as opened:
        opened["path"] = Path("x")
        opened["span"] = MadeError()
    with pytest.raises(ForbiddenTypeError, match="key 'span'"):
        PersistentDict(path, "r", serde=Serde(allow=()))
    again = PersistentDict[str, Any](path, "r", serde=Serde(allow=[MadeError]))
    assert isinstance(again["span"], MadeError)


class MadeError(ValueError):
    """A class of a known family."""


class Odd:
    """A serializer of the user's, for which a value may be anything."""

    def dumps_typed(self, obj: Any, /) -> tuple[str, bytes]:
        return "odd\ud800", repr(obj).encode()

    def loads_typed(self, data: tuple[str, bytes], /) -> Any:
        return [data[0], data[1].decode()]


def test_another_serializer_serves_as_well_and_its_failures_are_named(path: Path) -> None:
    with PersistentDict[str, Any](path, serde=Odd()) as opened:
        opened["a"] = 1
    with pytest.raises(SerializationError, match=r"comes back from the serializer as no key: unhashable"):
        PersistentDict(path, "r", serde=Odd())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3,), "expected the path of a file, not 3"),
        ((b"cache.db",), "expected the path of a file"),
        (("",), "expected the path of a file"),
        (("a\0b",), "expected the path of a file"),
        ((":memory:",), "is no file"),
        (("cache.db", "x"), r"the flag must be one of 'r' \(read\), .*, not 'x'"),
        (("cache.db", None), "the flag must be one of"),
    ],
)
def test_odd_arguments_are_refused(
    arguments: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=message):
        PersistentDict(*arguments)
    with pytest.raises(ConfigError, match="a serializer has dumps_typed"):
        PersistentDict("cache.db", serde=3)  # type: ignore[arg-type]  # that is the point
    assert list(tmp_path.iterdir()) == []


def test_other_threads_go_on_while_it_is_stored(path: Path) -> None:
    """Keys and values are those of one moment: a pair that is always set together is never found apart."""
    stop = threading.Event()
    with PersistentDict[Any, Any](path) as opened:
        opened["inside"] = {}

        def change_all_the_time() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                opened.update({("left", number % 50): number, ("right", number % 50): number})
                opened["inside"][number % 100] = number
                opened["inside"].pop((number * 7) % 100, None)
                opened.pop(("left", (number * 7) % 50), None)

        changing = [threading.Thread(target=change_all_the_time) for _ in range(2)]
        for each in changing:
            each.start()
        try:
            for _ in range(times(20, at_length=1000)):
                opened.sync()
        finally:
            stop.set()
            for each in changing:
                each.join()
        opened.sync()
        assert PersistentDict(path, "r") == opened


def test_of_two_syncs_at_once_the_later_one_stores_what_is_newer(path: Path) -> None:
    rounds = times(50, at_length=500)
    with PersistentDict[int, int](path) as opened:

        def add(first: int) -> Iterator[None]:
            for number in range(first, first + rounds):
                opened[number] = number
                opened.sync()
                yield

        threads = [threading.Thread(target=lambda first=first: list(add(first))) for first in (0, 1000)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert PersistentDict(path, "r") == opened
        assert len(opened) == 2 * rounds


def test_a_sync_is_as_durable_as_sqlite_can_be() -> None:
    assert sql.DURABLE == "PRAGMA synchronous = EXTRA"
