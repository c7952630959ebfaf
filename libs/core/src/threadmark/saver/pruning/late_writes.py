"""Writes that came when their checkpoint had gone: nobody reads them, and they would pile up.

An engine stores in the background, so what a task wrote may come after the step is over and its checkpoint has been
removed. It may also come before its checkpoint, which must not be taken for the same.
"""

from collections.abc import Iterable, Sequence

from threadmark.ids import time_of_id
from threadmark.saver.pruning.calls import enclosing_namespaces
from threadmark.store import Key, Outline, WriteRow

_SETTLED = 3600 * 1_000_000
"""Microseconds after which a checkpoint is not to come any more: an engine stores it as soon as it has made its id."""


def late_writes(outlines: Sequence[Outline], writes: Iterable[WriteRow], now: int) -> set[Key]:
    """Return the missing checkpoints that such writes of a thread belong to. `outlines` are the newest first."""
    there = {outline.key for outline in outlines}
    newest: dict[str, str] = {}
    for outline in outlines:
        newest.setdefault(outline.ns, outline.id)
    missing = {(row.ns, row.checkpoint_id) for row in writes} - there
    return {(ns, missed) for ns, missed in missing if missed < _newest(newest, ns) and _is_settled(missed, now)}


def _newest(newest: dict[str, str], ns: str) -> str:
    """The newest checkpoint of a namespace, or where a call has none, of the nearest one around it that has."""
    return next((newest[each] for each in (ns, *enclosing_namespaces(ns)) if each in newest), "")


def _is_settled(checkpoint_id: str, now: int) -> bool:
    made = time_of_id(checkpoint_id)
    return made is not None and made < now - _SETTLED
