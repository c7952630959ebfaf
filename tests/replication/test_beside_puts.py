"""Everything that changes a thread, while other processes put to it: both sides have it when it is acknowledged."""

import threading
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import backends
import postgres.backends
import redis_backend.backends
import threadmark
from threadmark import Saver, ThreadmarkError
from threadmark.replication import copying
from threadmark_conformance.engine import at, checkpoint

BACKENDS: dict[str, Any] = {
    "memory": backends.memory,
    "sqlite": backends.sqlite_file,
    "postgres": postgres.backends.from_url,
    "redis": redis_backend.backends.BACKENDS["single"],
}
STANDBYS = BACKENDS | {"postgres": postgres.backends.partitioned}  # in a separate schema
PAIRINGS = list(product(BACKENDS, BACKENDS))
WRITERS, ROUNDS = 2, 3


def put(saver: Saver, who: str, number: int, parent: Any = None) -> Any:
    text = f"{who} {number} " * 40
    return saver.put(parent or at("thread"), checkpoint({"text": text}), {}, {"text": number})


class Writer(threading.Thread):
    """Another process, which puts to the thread until the test ends it."""

    def __init__(self, saver: Saver, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.saver = saver
        self.over = threading.Event()
        self.made = 0
        self.unexpected: BaseException | None = None

    def run(self) -> None:
        while not self.over.wait(0.01):
            try:
                config = put(self.saver, self.name, self.made)
                self.saver.put_writes(config, [("text", self.made)], "task")
                self.made += 1
            except ThreadmarkError:
                continue  # the thread was deleted, say: it is put to again
            except BaseException as error:  # noqa: BLE001 - the test raises it
                self.unexpected = error
                return


def changes(number: int) -> list[tuple[str, Callable[[Saver], object]]]:
    """Everything that changes a thread, with new values each time."""

    def write_special(saver: Saver) -> None:
        config = put(saver, "main", number)
        saver.put_writes(config, [("__error__", f"error {number}")], "task")
        saver.put_writes(config, [("__error__", f"error {number} again")], "task")

    def delete_checkpoint(saver: Saver) -> None:
        saver.delete_checkpoint(put(saver, "main", number))

    later = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1 + number)
    return [
        ("title", lambda saver: saver.update_thread("thread", title=f"title {number}")),
        ("owner", lambda saver: saver.update_thread("thread", owner=f"owner {number}")),
        ("metadata", lambda saver: saver.update_thread("thread", metadata={"number": number})),
        ("expiry", lambda saver: saver.update_thread("thread", expires_at=later)),
        ("special write", write_special),
        ("delete_checkpoint", delete_checkpoint),
        ("prune", lambda saver: saver.prune(["thread"], keep_last=3)),
        ("fork", lambda saver: saver.fork(put(saver, "main", number), {"text": "branch"})),
    ]


def about(saver: Saver) -> Any:
    """The part of the thread that only the process under test changes."""
    found = saver.get_thread("thread")
    assert found is not None
    texts = [each.checkpoint["channel_values"].get("text", "") for each in saver.list(at("thread"))]
    own = [text for text in texts if text.startswith(("main", "branch"))]
    return found.owner, found.title, found.metadata, found.expires_at, own


@pytest.mark.parametrize(("active", "standby"), PAIRINGS, ids=lambda name: name)
def test_both_sides_have_a_change_when_it_is_acknowledged(active: str, standby: str, tmp_path: Path) -> None:
    for name in ("active", "standby"):
        (tmp_path / name).mkdir()
    with (
        BACKENDS[active](tmp_path / "active") as open_active,
        STANDBYS[standby](tmp_path / "standby") as open_standby,
        ExitStack() as savers,
    ):

        def opened() -> tuple[Saver, Saver]:
            return savers.enter_context(open_active()), savers.enter_context(open_standby())

        bare = opened()
        saver = savers.enter_context(threadmark.replicated(*opened()))
        put(saver, "main", 0)
        writers = [Writer(threadmark.replicated(*opened()), f"writer {number}") for number in range(WRITERS)]
        for writer in writers:
            writer.start()
        try:
            for number in range(ROUNDS):
                for name, change in changes(number):
                    change(saver)
                    one, other = map(about, bare)
                    assert one[:4] == other[:4], name
                    if name != "prune":  # the writers' puts decide what stays, and they go on
                        assert one[4] == other[4], name
        finally:
            for writer in writers:
                writer.over.set()
                writer.join()
        assert [writer.unexpected for writer in writers] == [None] * WRITERS
        assert all(writer.made for writer in writers)
        assert saver.drain() == 0
        assert about(bare[0]) == about(bare[1])


@pytest.mark.parametrize("name", ["title", "prune", "delete_checkpoint"])
def test_a_change_that_another_process_copies_ends_although_the_thread_goes_on_changing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time this process copies the thread, another one has just put to it and copied all there was."""
    with backends.memory(tmp_path) as open_active, backends.memory(tmp_path) as open_standby, ExitStack() as savers:

        def opened() -> Saver:
            return savers.enter_context(threadmark.replicated(open_active(), open_standby()))

        saver, other = opened(), opened()
        for number in range(4):
            put(saver, "main", number)
        copy_entry_rows = copying._copy_entry_rows
        others = iter(range(1000))

        def interrupted(*args: Any) -> Any:
            with monkeypatch.context() as own:
                own.setattr(copying, "_copy_entry_rows", copy_entry_rows)
                put(other, "other", next(others))
            return copy_entry_rows(*args)

        monkeypatch.setattr(copying, "_copy_entry_rows", interrupted)
        dict(changes(5))[name](saver)
        assert next(others) >= 1
        monkeypatch.undo()
        assert about(open_active()) == about(open_standby())
