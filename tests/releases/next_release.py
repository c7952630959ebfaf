"""A made-up next release of the three backends: format 2 has a column of checkpoints, and a new kind of row, a note.

`install` makes the process that calls it one of that release. It reads both formats, adds to a database whatever
format 2 has more, and writes format 1 until `upgrade`. From then on every checkpoint that it puts has the column and a
note, so that tests can count them.
"""

import hashlib
import importlib
import re
import sys
import time
from collections.abc import Callable
from functools import cache
from typing import Any

from threadmark.program import Program
from threadmark.store.contract import Added, Change, was_added

RELEASE = "0.2.0"

NUMBER = 2


def install(backend: str, *, least_reader: int = 1) -> None:
    """Make this process one of the next release, on this backend."""
    {"sqlite": _sqlite, "postgres": _postgres, "redis": _redis}[backend](least_reader)


def _sqlite(least_reader: int) -> None:
    migrations, connections, store = _modules("threadmark_sqlite", "migrations", "sql.connections", "store")
    execute = store.execute

    step = migrations.Migration(
        NUMBER,
        "a column of checkpoints, and notes",
        (
            "ALTER TABLE threadmark_checkpoint ADD COLUMN made_up TEXT",
            "CREATE TABLE threadmark_note (thread_id TEXT NOT NULL, body TEXT NOT NULL)",
            "CREATE INDEX threadmark_note_thread ON threadmark_note (thread_id)",
        ),
        least_reader=least_reader,
        least_writer=NUMBER,
        release=RELEASE,
    )
    migrations.MIGRATIONS, migrations.CURRENT = (*migrations.MIGRATIONS, step), NUMBER

    def with_notes(add: Callable[[Any, Change], Program[Added]]) -> Callable[[Any, Change], Program[Added]]:
        def adding(self: Any, change: Change) -> Program[Added]:
            added = yield from add(self, change)
            ((written,),) = yield from execute(connections.GET_WRITTEN)
            if written == NUMBER and was_added(change, added):
                for row in change.checkpoints:
                    place = change.thread_id, row.outline.ns, row.outline.rank
                    yield from execute(
                        "UPDATE threadmark_checkpoint SET made_up = ? WHERE ns = ? AND rank = ? AND thread ="
                        " (SELECT thread FROM threadmark_thread WHERE thread_id = ?)",
                        (row.outline.rank, place[1], place[2], place[0]),
                    )
                    yield from execute("INSERT INTO threadmark_note VALUES (?, ?)", (place[0], place[2]))
            return added

        return adding

    for name in ("add", "replace"):
        setattr(store.SqliteStore, name, with_notes(getattr(store.SqliteStore, name)))


_RENAMED = (
    *("gate", "refusal", "begin", "enter", "lock", "lock_lease", "renew_lease", "record"),
    *("add_one", "add", "drop"),
)
"""Functions of Postgres that call one which the switch retires. Format 2 has them once more, under its own number."""

_NOTES = """
    IF {checkpoints} IS NOT NULL THEN
        UPDATE tm.checkpoint AS c SET made_up = c.rank WHERE c.thread_id = p_thread AND c.rank = ANY ({checkpoints});
        INSERT INTO tm.note (thread_id, body) SELECT p_thread, r FROM unnest({checkpoints}) AS r;
    END IF;
    IF p_entry IS NOT NULL THEN
"""


def _postgres(least_reader: int) -> None:
    adding, functions, migrations, thread_store, distributing, driver, schemas = _modules(
        "threadmark_postgres",
        *("adding", "functions", "migrations", "thread_store", "sql.distributing", "driver.driver", "schema"),
    )
    calls = re.compile(rf"\btm\.({'|'.join(_RENAMED)})_1\b")
    text_of, noted, written = functions.text_of, driver.PostgresDriver._note_ready, [1]

    @cache
    def text(name: str) -> Any:
        base, _, number = name.rpartition("_")
        if number != str(NUMBER):
            return text_of(name)
        found = calls.sub(r"tm.\1_2", text_of(f"{base}_1"))
        checkpoints = {"add_one": "array_remove(ARRAY[p_rank], NULL)", "add": "p_rank"}.get(base)
        if checkpoints:
            head, entry, tail = found.rpartition("    IF p_entry IS NOT NULL THEN\n")
            assert entry
            found = head + _NOTES.format(checkpoints=checkpoints).lstrip("\n") + tail
        return found

    def in_written_form(statement: str, schema: str | None) -> Any:
        return schemas.in_schema(calls.sub(r"tm.\1_2", statement) if written[0] == NUMBER else statement, schema)

    def note_ready(self: Any, found: Any) -> None:
        noted(self, found)
        written[0] = found.format.least_writer

    step = migrations.Migration(
        NUMBER,
        "a column of checkpoints, and notes",
        (migrations.Table("note", 'thread_id text COLLATE "C" NOT NULL, body text NOT NULL'),),
        ("ALTER TABLE tm.checkpoint ADD COLUMN made_up text",),
        tuple(f"{name}_2" for name in _RENAMED),
        retired=migrations.GATES,
        least_reader=least_reader,
        least_writer=NUMBER,
        release=RELEASE,
    )
    migrations.MIGRATIONS, migrations.CURRENT = (*migrations.MIGRATIONS, step), NUMBER
    for module in (migrations, distributing, functions):
        module.text_of = text
    for module in (adding, thread_store):
        module.in_schema = in_written_form
    driver.PostgresDriver._note_ready = note_ready


def _redis(least_reader: int) -> None:
    formats, steps, columns = _modules("threadmark_redis", "formats", "steps", "columns")
    _modules("threadmark_redis", "saver")  # and with it all others
    formats.STEPS = (*formats.STEPS, formats.Step(NUMBER, least_reader, NUMBER, RELEASE))
    formats.CURRENT = NUMBER
    checkpoint_value, written = columns.checkpoint_value, [1]
    for module in [each for name, each in list(sys.modules.items()) if name.startswith("threadmark_redis")]:
        for name, value in list(vars(module).items()):
            if isinstance(value, steps.Script):
                setattr(module, name, _script(value))
            elif value is checkpoint_value:
                setattr(module, name, _with_column(value, columns, written))
    _mark_threads(written)
    _follow_the_switch(formats.KnownFormat, written)


_MADE = "-- From here on the change is made.\n"
_NOTED = f"""{_MADE}
if tonumber(ARGV[4]) == {NUMBER} then
    redis.call('HSET', head, FORM, {NUMBER})
    for _, row in ipairs(checkpoints) do
        redis.call('HSET', rows, '\\255\\1note' .. measured(row[1]) .. row[2], row[2])
    end
end
"""


def _script(old: Any) -> Any:
    """The script of the next release."""
    text = old.text.replace("local FORM, KNOWN = 'format', 1 ", f"local FORM, KNOWN = 'format', {NUMBER} ")
    assert old.name not in ("add", "find") or text != old.text
    text = text.replace(_MADE, _NOTED)
    return old._replace(text=text, sha=hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


def _mark_threads(written: list[int]) -> None:
    """A thread that has something of format 2 says so, whether one script changes it or a transaction."""
    at_once, store, steps, columns = _modules("threadmark_redis", "adding_at_once", "store", "steps", "columns")
    add = store.add_to_locked

    def run(asked: Any, keys: Any, args: Any, *, writes: bool = True) -> Program[Any]:
        more = (written[0],) if asked.name == "add" else ()
        return (yield from steps.run(asked, keys, (*args, *more), writes=writes))

    def add_to_locked(reader: Any, locked: Any, change: Change, *, replace: bool) -> Program[Added]:
        added: Added = yield from add(reader, locked, change, replace=replace)
        if written[0] == NUMBER and was_added(change, added):
            locked.set_head({b"format": b"%d" % NUMBER})
            for row in change.checkpoints:
                place = columns.member_of(row.outline.ns, row.outline.rank)
                locked.checkpoints.changes[b"\xff\x01note" + place] = row.outline.rank.encode()
        return added

    at_once.run, store.add_to_locked = run, add_to_locked


def _with_column(checkpoint_value: Callable[[Any], bytes], columns: Any, written: list[int]) -> Callable[[Any], Any]:
    def with_column(row: Any) -> Any:
        value = checkpoint_value(row)
        if written[0] != NUMBER:
            return value
        return columns.pack([*columns.unpack(value), columns.to_bytes(row.outline.rank)])

    return with_column


def _follow_the_switch(known: Any, written: list[int]) -> None:
    """Write in the new format from the moment that every process knows. (Here the server has this machine's clock.)"""
    made, note = known.__init__, known.note

    def init(self: Any, *args: Any, **named: Any) -> None:
        made(self, *args, **named)
        self.asking = (*self.asking, b"s")

    def note_it(self: Any, asked: float, found: list[bytes | None]) -> None:
        note(self, asked, found[:3])
        if self._found.least_writer == NUMBER and int(found[3] or 0) <= time.time() * 1_000_000:
            written[0] = NUMBER

    known.__init__, known.note = init, note_it


def _modules(package: str, *names: str) -> list[Any]:
    """Modules without their types, because everything in them is replaced here."""
    return [importlib.import_module(f"{package}.{name}") for name in names]
