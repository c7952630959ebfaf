"""An index that a later release adds to a table in use: `setup()` builds it, and the saver's users go on."""

import threading
from collections.abc import Iterator

import psycopg
import pytest

from postgres import next_format
from postgres.steps import play
from threadmark_postgres import PostgresSaver, ddl, migrations
from threadmark_postgres.indexes import Index

_ADDED = Index("threadmark_checkpoint_made_up", "checkpoint", "(created_at) WHERE id IS NOT NULL")
_SCHEMA = "tm"


@pytest.fixture(params=[None, 3], ids=["whole", "partitions"])
def partitions(request: pytest.FixtureRequest) -> int | None:
    parts: int | None = request.param
    return parts


@pytest.fixture
def used(database: str, partitions: int | None) -> str:
    """A database of today's release that has threads."""
    with PostgresSaver(database, schema=_SCHEMA) as saver:
        saver.setup(partitions=partitions)
        for number in range(5):
            play(saver, f"thread {number}", 2)
    return database


@pytest.fixture
def later(used: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresSaver]:
    """A saver of the next release on it."""
    step = next_format.STEP._replace(indexes=(_ADDED,))
    monkeypatch.setattr(next_format, "STEP", step)
    next_format.install(monkeypatch)
    with PostgresSaver(used, schema=_SCHEMA) as saver:
        yield saver


def states(database: str) -> list[bool]:
    """Whether each index of that name is valid: of the table, and of its partitions."""
    with psycopg.connect(database) as tables:
        rows = tables.execute(
            "SELECT i.indisvalid FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid "
            "JOIN pg_class AS t ON t.oid = i.indrelid "
            "WHERE c.relname LIKE 'threadmark_checkpoint_made_up%' OR "
            "(t.relname LIKE 'threadmark_checkpoint_%' AND pg_get_indexdef(c.oid) LIKE '%(created_at)%')"
        )
        return [bool(row[0]) for row in rows]


def warned(saver: PostgresSaver) -> bool:
    return any(_ADDED.name in line for line in saver.report().warnings)


def test_the_first_use_adds_the_step_and_no_index(used: str, later: PostgresSaver) -> None:
    play(later, "another", 1)
    assert later.report().format == next_format.NUMBER
    assert warned(later)
    assert states(used) == []


def test_setup_builds_it(used: str, later: PostgresSaver, partitions: int | None) -> None:
    later.setup()
    assert states(used) == [True] * (1 + (partitions or 0))
    assert not warned(later)
    later.setup()  # there is nothing left to do
    assert states(used) == [True] * (1 + (partitions or 0))


async def test_setup_builds_it_for_asyncio(used: str, later: PostgresSaver, partitions: int | None) -> None:
    await later.asetup()
    assert states(used) == [True] * (1 + (partitions or 0))


def test_others_write_while_it_is_built(used: str, later: PostgresSaver) -> None:
    play(later, "another", 1)
    with psycopg.connect(used) as slow:  # the server waits for this transaction before the index is complete
        slow.execute("LOCK TABLE tm.threadmark_checkpoint IN ROW EXCLUSIVE MODE")
        building = threading.Thread(target=later.setup)
        building.start()
        with PostgresSaver(used, schema=_SCHEMA) as other:
            for number in range(20):
                play(other, f"beside {number}", 1)
        assert building.is_alive()
    building.join(30)
    assert not building.is_alive()
    assert states(used)
    assert all(states(used))


def test_one_whose_builder_was_interrupted_is_built_again(used: str, later: PostgresSaver) -> None:
    later.setup()
    with psycopg.connect(used) as tables:
        tables.execute(
            "UPDATE pg_index SET indisvalid = false FROM pg_class AS c "
            "WHERE c.oid = indexrelid AND c.relname LIKE 'threadmark_checkpoint_made_up%'"
        )
    assert not all(states(used))
    assert warned(later)
    later.setup()
    assert all(states(used))
    assert not warned(later)


def test_a_new_database_has_it_at_once(database: str, monkeypatch: pytest.MonkeyPatch, partitions: int | None) -> None:
    monkeypatch.setattr(next_format, "STEP", next_format.STEP._replace(indexes=(_ADDED,)))
    next_format.install(monkeypatch)
    with PostgresSaver(database, schema=_SCHEMA) as saver:
        saver.setup(partitions=partitions)
        assert not warned(saver)
    assert states(database) == [True] * (1 + (partitions or 0))


def test_a_script_builds_it_after_its_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(next_format, "STEP", next_format.STEP._replace(indexes=(_ADDED,)))
    next_format.install(monkeypatch)
    earlier = ddl(_SCHEMA, since=migrations.CURRENT - 1)
    assert (
        earlier.partition("COMMIT;")[2].split()
        == (
            'CREATE INDEX CONCURRENTLY IF NOT EXISTS threadmark_checkpoint_made_up ON "tm".threadmark_checkpoint '
            "(created_at) WHERE id IS NOT NULL;"
        ).split()
    )
    assert "CONCURRENTLY" not in ddl(_SCHEMA)
