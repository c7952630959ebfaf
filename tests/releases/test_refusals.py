"""After the switch a process of the earlier release is refused by each call that changes something, and only then."""

import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from postgres.cluster import shared
from redis_backend.processes import FORGETFUL, RedisProcess
from releases.databases import BACKENDS, READ_AGAIN, SEVERAL_SERVERS, Database, made, on_its_own
from releases.worker import at, checkpoint, opened
from threadmark import Saver, SchemaError
from threadmark.program import Program, Transaction
from threadmark.store.replica import Copied, Replica, ReplicaStore
from threadmark.types import Lease
from threadmark_postgres import PostgresSaver
from threadmark_redis import formats
from threadmark_redis.keys import thread_keys


@pytest.fixture(params=(*BACKENDS, *SEVERAL_SERVERS))
def database(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """An empty database of format 1."""
    monkeypatch.setattr(formats, "READ_AGAIN", float(READ_AGAIN))
    with made(request.param, tmp_path) as found:
        yield found


def _put(saver: Saver, thread: str, number: int, **metadata: Any) -> dict[str, Any]:
    parent = saver.get_tuple(at(thread))
    versions = {"number": number}
    return saver.put(
        parent.config if parent else at(thread, ""), checkpoint({"number": number}, versions), metadata, versions
    )


def _begin_lease(saver: Saver) -> None:
    with saver.lease("two", holder="old"):
        pass


def _put_under(lease: Lease, saver: Saver) -> None:
    saver.put(lease.config, checkpoint({"number": 2}, {"number": 2}), {}, {"number": 2})


CALLS: Mapping[str, Callable[[Saver], object]] = {
    "put": lambda saver: _put(saver, "one", 9),
    "put of a thread": lambda saver: _put(saver, "new", 9),
    "put_writes": lambda saver: saver.put_writes(saver.get_tuple(at("one")).config, [("number", 9)], "task"),  # type: ignore[union-attr] # it is there
    "delete_thread": lambda saver: saver.delete_thread("one"),
    "delete_checkpoint": lambda saver: saver.delete_checkpoint(list(saver.list(at("one")))[-1].config),
    "delete_for_runs": lambda saver: saver.delete_for_runs(["run"]),
    "copy_thread": lambda saver: saver.copy_thread("one", "copy"),
    "rename_thread": lambda saver: saver.rename_thread("one", "renamed"),
    "prune": lambda saver: saver.prune(["one"]),
    "apply_retention": lambda saver: saver.apply_retention(idle_for=timedelta(microseconds=1)),
    "create_thread": lambda saver: saver.create_thread("created"),
    "update_thread": lambda saver: saver.update_thread("one", title="a title"),
    "fork": lambda saver: saver.fork(list(saver.list(at("one")))[-1].config, {"number": 7}),
    "fork to a thread": lambda saver: saver.fork(at("one"), as_thread="forked"),
    "restore": lambda saver: saver.restore(list(saver.list(at("one")))[-1].config),
    "lease": _begin_lease,
}


def test_each_call_that_changes_something_is_refused_in_a_process_that_runs(database: Database) -> None:
    with database.opened() as saver:
        for number in range(3):
            _put(saver, "one", number, run_id="run")
            _put(saver, "two", number)
        lease = saver.lease("leased", holder="old", ttl=60)
        lease.__enter__()  # its end is one of the calls
        saver.put(lease.config, checkpoint({"number": 1}, {"number": 1}), {}, {"number": 1})
        on_its_own(database, "upgrade")
        before = _contents(database)
        under_lease: Mapping[str, Callable[[Saver], object]] = {
            "put under a lease": partial(_put_under, lease),
            "renew": lambda _: lease.renew(),
            "release": lambda _: lease.release(),
        }
        for name, call in {**CALLS, **under_lease}.items():
            with pytest.raises(SchemaError, match="upgrade threadmark-"):
                _must_not(call, saver, name)
        assert _contents(database) == before


def _must_not(call: Callable[[Saver], object], saver: Saver, name: str) -> None:
    call(saver)
    pytest.fail(f"{name} was not refused")


def _contents(database: Database) -> list[object]:
    with database.for_reading() as saver:
        threads = saver.list_threads(limit=100).threads
        found = [[thread.id, thread.title, list(saver.list(at(thread.id)))] for thread in threads]
        return sorted(found, key=repr)


def _of_a_pair(store: ReplicaStore) -> Mapping[str, Callable[[], Program[None]]]:
    def settle() -> Program[None]:
        yield from store.settle("one", 2**62)

    def set_copied() -> Program[None]:
        yield from store.set_copied("one", Copied(5, 6))

    def record() -> Program[None]:
        yield from store.record("one", b"another", 1)

    def same_term() -> Program[None]:
        yield from store.set_replica(Replica(1, "{}"))

    def greater_term() -> Program[None]:
        yield from store.set_replica(Replica(2, "{}"))

    return {
        "record": record,
        "settle": settle,
        "set_copied": set_copied,
        "the same term": same_term,
        "a greater term": greater_term,
    }


def _run(program: Callable[[], Program[Any]], saver: Saver) -> object:
    return saver._driver.run(Transaction(program, writes=True))


def test_what_a_pair_of_databases_keeps_is_not_changed_either(database: Database) -> None:
    with database.opened() as saver:
        _put(saver, "one", 1)
        store = saver._store
        assert isinstance(store, ReplicaStore)
        changes = _of_a_pair(store)
        _run(changes["the same term"], saver)
        _run(changes["record"], saver)
        on_its_own(database, "upgrade")
        for name, change in changes.items():
            with pytest.raises(SchemaError, match="upgrade threadmark-"):
                _must_not(partial(_run, change), saver, name)
    with database.for_reading() as reader:
        assert len(reader._driver.run(Transaction(store.outbox, (None, 10)))) == 1
        assert reader._driver.run(Transaction(store.replica)) == Replica(1, "{}")


def test_a_thread_of_redis_with_data_of_a_later_format_is_not_changed_by_a_process_that_stood_still() -> None:
    with RedisProcess(FORGETFUL).start() as server, opened("redis", server.url) as saver:
        for name in ("one", "two"):
            for number in range(2):
                _put(saver, name, number)
        head = thread_keys(b"threadmark:", "one").head
        server.client.hset(head, "format", "2")  # as a process of the next release does with its first change
        before = server.client.hgetall(head)
        calls = {name: CALLS[name] for name in ("put", "put_writes", "delete_thread", "prune", "update_thread")}
        for name, call in calls.items():
            with pytest.raises(SchemaError, match="thread 'one' has data of a later format"):
                _must_not(call, saver, name)
        assert server.client.hgetall(head) == before
        assert saver.get(at("one")) is not None
        _put(saver, "two", 9)


def test_setup_of_the_next_release_keeps_no_one_from_writing_while_it_waits_for_a_table(tmp_path: Path) -> None:
    with made("postgres", tmp_path) as database, PostgresSaver(database.url) as saver:
        _put(saver, "one", 0)
        with psycopg.connect(database.url) as reader:
            reader.execute("SELECT count(*) FROM threadmark_checkpoint")  # its lock lasts until the transaction ends
            setup = threading.Thread(target=on_its_own, args=(database, "setup"))
            setup.start()
            for number in range(1, 200):
                _put(saver, "one", number)
                if number > 20 and _waits_for_lock(database):
                    break
            _put(saver, "one", 999)  # this would wait for `setup`, and that for the reader
        setup.join(60)
        assert not setup.is_alive()
        assert saver.report().format == 2
        _put(saver, "one", 1000)


def _waits_for_lock(database: Database) -> bool:
    name = database.url.rpartition("/")[2]
    with psycopg.connect(shared().url) as connection:
        (found,) = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND query LIKE 'ALTER TABLE%%'", [name]
        )
    return bool(found[0])
