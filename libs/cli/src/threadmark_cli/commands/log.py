"""`threadmark log`: the checkpoints of a thread, newest first, as a table or as a graph."""

import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import click
from rich.cells import cell_len

from threadmark import SaverProtocol
from threadmark.types import EffectInfo, HistoryEntry
from threadmark_cli.addresses import Addresses, addresses_of, thread_or_newest
from threadmark_cli.command import command
from threadmark_cli.completion import thread_ids
from threadmark_cli.describing import entry_record, own_channels, short_ns, signs, what_ran
from threadmark_cli.effects import EffectsOfSteps, effect_record, effect_signs, effects_of_steps, is_ledger
from threadmark_cli.graph import ASCII, LINES, Graph
from threadmark_cli.output import Column, Output, Part, fitted, one_line, plain
from threadmark_cli.output.quantities import bytes_text, minute_text, time_text
from threadmark_cli.session import Session

_PAGE = 256
_NARROW = 80
"""Columns of a terminal below which a time is printed without its year and seconds, so that nodes' names have room."""


class _Line(NamedTuple):
    """A checkpoint, and its marks."""

    entry: HistoryEntry
    short: str
    marks: list[Part]


@command(
    "log",
    examples="""
    threadmark log agents.db                    # of the thread that was updated last
    threadmark log agents.db support-42         # of this one
    threadmark log support-42 --graph           # of THREADMARK_URL, with its branches
    threadmark log support-42 --ns "" -n 5      # the newest five, without those of subgraphs
    threadmark log support-42 --json | jq .step
    """,
)
@click.argument("thread", required=False, shell_complete=thread_ids)
@click.option("--graph", is_flag=True, help="Draw which checkpoint follows which: branches, forks, subgraphs.")
@click.option("--ns", metavar="NAMESPACE", help='Only this namespace, "" for the graph\'s own (by default all).')
@click.option("-n", "--limit", type=click.IntRange(min=0), default=0, help="How many (by default all).")
def log(session: Session, thread: str | None, *, graph: bool, ns: str | None, limit: int) -> None:
    """List the checkpoints of THREAD, newest first, without reading their states.

    Without THREAD it is the one that was updated last.
    """
    out = session.out
    with session.saver() as saver, out.paged():
        thread_id = thread_or_newest(saver, thread)
        addresses = None
        if ns or not out.as_json:  # which also says which namespace is meant
            addresses = addresses_of(saver, thread_id)
            ns = addresses.ns(ns) if ns else ns
        entries = _entries(session, saver, thread_id, ns, limit)
        effects = effects_of_steps(saver, thread_id, out)
        if addresses is None or out.as_json:
            for entry in entries:
                out.record({**entry_record(thread_id, entry), "effects": [*map(effect_record, _of(effects, entry))]})
            return
        if thread is None:
            out.line(("thread ", "dim"), (thread_id, "id"))
        lines = (_Line(entry, addresses.short(entry.id), _marks(addresses, entry, effects)) for entry in entries)
        if graph:
            _draw(out, lines, with_callers=ns is None)
        else:
            out.rows(_COLUMNS, lines, lambda _: {})


def _entries(
    session: Session, saver: SaverProtocol, thread_id: str, ns: str | None, limit: int
) -> Iterator[HistoryEntry]:
    cursor, left = None, limit
    while True:
        page = saver.history(thread_id, ns=ns, limit=min(left, _PAGE) if limit else _PAGE, cursor=cursor)
        entries = [entry for entry in page.entries if ns is not None or not is_ledger(entry.ns)]
        yield from entries
        for problem in page.problems:
            session.out.warn(f"{problem.location}: {problem.problem}")
        left, cursor = left - len(entries), page.cursor
        if cursor is None or (limit and left <= 0):
            return


def _of(effects: EffectsOfSteps, entry: HistoryEntry) -> Sequence[EffectInfo]:
    return () if entry.ns else effects.get(entry.id, ())


def _marks(addresses: Addresses, entry: HistoryEntry, effects: EffectsOfSteps) -> list[Part]:
    """A checkpoint's role in its namespace, the writes of its tasks, and their effects."""
    branch = addresses.branch_of_head(entry.ns, entry.id)
    found = [*signs(entry), *effect_signs(_of(effects, entry))]
    if branch is None:
        return found
    return [("newest", "head") if branch.is_newest else ("head", "good"), *found]


def _joined(marks: Sequence[Part]) -> Part:
    """All of them in one piece, in the style of the first."""
    if not marks:
        return ""
    text, first = ", ".join(map(plain, marks)), marks[0]
    return text if isinstance(first, str) else (text, first[1])


_COLUMNS: tuple[Column[_Line], ...] = (
    Column("CHECKPOINT", lambda line: (line.short, "id")),
    Column("CREATED (UTC)", lambda line: time_text(line.entry.created_at)),
    Column("STEP", lambda line: "-" if line.entry.step is None else str(line.entry.step), right=True),
    Column("NS", lambda line: short_ns(line.entry.ns), cut=True),
    Column("RAN", lambda line: (what_ran(line.entry), "name"), cut=True),
    Column("CHANGED", lambda line: ", ".join(own_channels(line.entry.changed)), cut=True),
    Column("BYTES", lambda line: bytes_text(line.entry.size_bytes), right=True),
    Column("", lambda line: _joined(line.marks)),
)


def _draw(out: Output, lines: Iterator[_Line], *, with_callers: bool) -> None:
    graph = Graph(LINES if _has_lines() else ASCII)
    is_narrow = out.width is not None and out.width < _NARROW
    for line in lines:
        entry = line.entry
        joins, drawn = graph.add((entry.ns, entry.id), _followed(entry, with_callers=with_callers))
        if joins is not None:
            out.line((joins, "dim"))
        out.line(*_fitted(out, [(drawn, "dim"), "  ", *_described(line, is_narrow=is_narrow)]))


def _followed(entry: HistoryEntry, *, with_callers: bool) -> tuple[str, str] | None:
    """The checkpoint that this one follows: its parent, or, if a subgraph begins, the one that called it."""
    if entry.parent is not None:
        return entry.ns, entry.parent
    callers = entry.metadata.get("parents")
    if not with_callers or not entry.ns or not isinstance(callers, dict) or not callers:
        return None
    ns, caller = max(callers.items(), key=lambda item: len(item[0]))
    return (ns, caller) if isinstance(caller, str) else None


def _described(line: _Line, *, is_narrow: bool) -> Iterator[Part]:
    entry = line.entry
    yield line.short, "id"
    yield "  "
    yield (minute_text if is_narrow else time_text)(entry.created_at), "dim"
    yield "  "
    if entry.ns:
        yield f"{short_ns(entry.ns)}: ", "dim"
    yield what_ran(entry), "name"
    channels = own_channels(entry.changed)
    if channels:
        yield f"  {', '.join(channels)}"
    for mark in line.marks:
        yield f"  ({mark})" if isinstance(mark, str) else (f"  ({mark[0]})", mark[1])


def _fitted(out: Output, parts: list[Part]) -> Iterator[Part]:
    """The pieces of a line that the terminal has room for."""
    if out.width is None:
        yield from parts
        return
    left = out.width
    for part in parts:
        text = one_line(plain(part))
        cut = fitted(text, left)
        yield cut if isinstance(part, str) else (cut, part[1])
        left -= cell_len(cut)
        if left <= 0 or cut != text:
            return


def _has_lines() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
