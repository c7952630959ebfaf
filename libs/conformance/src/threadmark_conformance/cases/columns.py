"""Rows and their columns: each field of a row that is stored comes back, whichever operation reads it.

The fields are those of the row classes, so a new one is tested as soon as it exists: a backend that forgets a field, or
swaps it with another one, fails here with the operation and the field.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, get_args, get_type_hints

from threadmark.format.packs import FIRST_RECORD
from threadmark.program import Program
from threadmark.store.contract import Change, CheckpointRow, Outline, Scope, Store, WriteRow, now, rank_after, was_added
from threadmark.store.threads import ThreadRow, ThreadScope
from threadmark_conformance.backend import World
from threadmark_conformance.engine import early_id

_THREAD = "thread"
_NS = "ns"
_NOT_READ = {"run_id"}
"""Fields that a row may lack when it is read."""


async def every_field_of_a_checkpoint_comes_back(world: World) -> None:
    first = _checkpoint(early_id(5), early_id(5), None)
    set_back = _checkpoint(early_id(4), rank_after(early_id(5), early_id(4)), early_id(5))
    for row in (first, set_back):
        await _add(world, row)
    await _expect_checkpoints(world, [first, set_back])
    outline = set_back.outline._replace(parent=early_id(1), metadata='"rewritten"')
    rewritten = set_back._replace(outline=outline, **_values(CheckpointRow, "rewritten", "outline"))
    await world.in_base_store(partial(_rewrite, row=rewritten))
    await _expect_checkpoints(world, [first, rewritten])
    outline = first.outline._replace(metadata='"replaced"', created_at=7)
    replaced = first._replace(outline=outline, **_values(CheckpointRow, "replaced", "outline"))
    await world.in_base_store(partial(_replace, row=replaced))
    await _expect_checkpoints(world, [replaced, rewritten])
    await world.in_base_store(_drop)  # no header of these can be read


async def every_field_of_a_pending_write_comes_back(world: World) -> None:
    checkpoint = _checkpoint(early_id(5), early_id(5), None)
    writes = [_write(early_id(5), index) for index in (-1, 0, FIRST_RECORD)]
    await _add(world, checkpoint)
    await _add(world, None, writes)
    reads: Mapping[str, Any] = {
        "find": lambda store: _writes_found(store, early_id(5)),
        "find the newest": lambda store: _writes_found(store, None),
        "writes of a checkpoint": lambda store: store.writes(_THREAD, [(_NS, early_id(5))]),
        "writes of a thread": lambda store: store.writes(_THREAD, None),
    }
    for operation, read in reads.items():
        found = await world.in_base_store(read)
        _expect_same(operation, writes, sorted(found, key=lambda row: row.idx))
    replacing = _write(early_id(5), -1)._replace(value=b"another value", check=b"another check")
    await _add(world, None, [replacing])
    found = await world.in_base_store(reads["find"])
    _expect_same("a special write that was replaced", [replacing], [row for row in found if row.idx < 0])
    await world.in_base_store(_drop)


async def every_field_of_a_thread_comes_back(world: World) -> None:
    await _add(world, _checkpoint(early_id(5), early_id(5), None))
    row = ThreadRow(**_values(ThreadRow, "set"))
    row = row._replace(thread_id=_THREAD, metadata='{"a": 1}', expires_at=now() + 3600_000_000)
    began = await world.in_base_store(lambda store: store.thread(_THREAD))
    row = row._replace(created_at=began.row.created_at)  # no operation sets it
    await world.in_base_store(lambda store: store.set_thread(row))
    reads: Mapping[str, Any] = {
        "thread": lambda store: _one(store.thread(_THREAD)),
        "thread_outlines": lambda store: store.thread_outlines([_THREAD]),
        "thread_page": lambda store: store.thread_page(ThreadScope(), None, 0, 10),
    }
    for operation, read in reads.items():
        _expect_same(operation, [row], [each.row for each in await world.in_base_store(read)])
    await world.in_base_store(_drop)


def _checkpoint(checkpoint_id: str, rank: str, parent: str | None) -> CheckpointRow:
    of_outline = _values(Outline, checkpoint_id) | {"thread_id": _THREAD, "ns": _NS, "id": checkpoint_id}
    of_outline |= {"rank": rank, "parent": parent, "metadata": f'"{checkpoint_id}"'}
    return CheckpointRow(Outline(**of_outline), **_values(CheckpointRow, checkpoint_id, "outline"))


def _write(checkpoint_id: str, index: int) -> WriteRow:
    values = _values(WriteRow, index) | {"ns": _NS, "checkpoint_id": checkpoint_id, "idx": index}
    if index >= FIRST_RECORD:  # a record has neither
        values |= {"task_path": "", "channel": ""}
    return WriteRow(**values)


def _values(kind: type[Any], of: object, *but: str) -> dict[str, Any]:
    """Return a value for each field of a row except these, different from all other fields and rows."""
    hints = get_type_hints(kind)
    return {name: _value(f"{name} of {of}", hints[name]) for name in kind._fields if name not in but}


def _value(text: str, hint: Any) -> Any:
    kind = next(iter(get_args(hint)), hint)  # of a field that may be missing, the type that it has otherwise
    values: Mapping[Any, Any] = {str: text, bytes: text.encode(), int: 1 + sum(text.encode()), bool: True}
    return values[kind]


async def _add(world: World, checkpoint: CheckpointRow | None, writes: Sequence[WriteRow] = ()) -> None:
    checkpoints = [] if checkpoint is None else [checkpoint]
    change = Change(_THREAD, None, now(), {}, checkpoints, writes, None)
    added = await world.in_base_store(lambda store: store.add(change))
    assert was_added(change, added)


def _rewrite(store: Store, row: CheckpointRow) -> Program[None]:
    yield from store.lock(_THREAD)
    yield from store.rewrite(_THREAD, [row])


def _replace(store: Store, row: CheckpointRow) -> Program[None]:
    added = yield from store.replace(Change(_THREAD, None, now(), {}, [row], (), None))
    assert added.replaced


def _drop(store: Store) -> Program[None]:
    yield from store.lock(_THREAD)
    yield from store.drop(_THREAD, now())


async def _expect_checkpoints(world: World, rows: Sequence[CheckpointRow]) -> None:
    *_, newest = sorted(rows, key=lambda row: row.outline.rank)
    keys = [row.outline.key for row in rows]
    scope = Scope(_THREAD, _NS)
    reads: Mapping[str, tuple[Any, Sequence[CheckpointRow]]] = {
        "rows": (lambda store: store.rows(_THREAD, keys), rows),
        "find": (lambda store: _one(_row_found(store, rows[0].outline.id)), rows[:1]),
        "find the newest": (lambda store: _one(_row_found(store, None)), [newest]),
        "newest": (_newest, [newest]),
        "chain": (lambda store: store.chain(_THREAD, _NS, rows[0].outline.id, 1), rows[:1]),
        "page_of_rows": (lambda store: store.page_of_rows(scope, None, 9), rows),
    }
    for operation, (read, expected) in reads.items():
        found = await world.in_base_store(read)
        if found is not None:  # a backend without pages of rows
            _expect_same(operation, expected, sorted(found, key=lambda row: row.outline.id != rows[0].outline.id))
    page = await world.in_base_store(lambda store: store.page(scope, None, 9))
    _expect_same("page", sorted(row.outline for row in rows), sorted(page))


def _row_found(store: Store, checkpoint_id: str | None) -> Program[CheckpointRow | None]:
    found = yield from store.find(_THREAD, _NS, checkpoint_id)
    return None if found is None else found.row


def _writes_found(store: Store, checkpoint_id: str | None) -> Program[Sequence[WriteRow]]:
    found = yield from store.find(_THREAD, _NS, checkpoint_id)
    return () if found is None else found.writes


def _newest(store: Store) -> Program[list[CheckpointRow | None]]:
    found = yield from store.newest([_THREAD], _NS)
    return [each.row for each in found.values()]


def _one(program: Program[Any]) -> Program[list[Any]]:
    return [(yield from program)]


def _expect_same(operation: str, expected: Sequence[Any], found: Sequence[Any]) -> None:
    assert len(found) == len(expected), f"{operation} returned {len(found)} rows instead of {len(expected)}"
    for stored, read in zip(expected, found, strict=True):
        differing = dict(_differences(stored, read))
        assert not differing, f"{operation} returned {type(stored).__name__}s that differ: {differing}"


def _differences(stored: NamedTuple, read: NamedTuple) -> list[tuple[str, tuple[Any, Any]]]:
    """Return the fields that differ from the stored ones, each with both values."""
    every: list[tuple[str, tuple[Any, Any]]] = []
    for name, value in stored._asdict().items():
        other = getattr(read, name)
        if isinstance(value, Outline):
            every += _differences(value, other)
        elif other != value and not (name in _NOT_READ and other is None):
            every.append((name, (value, other)))
    return every
