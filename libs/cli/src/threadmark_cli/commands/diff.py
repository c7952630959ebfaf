"""`threadmark diff`: the differences between two checkpoints of a thread."""

from collections.abc import Iterator, Sequence
from typing import Any

import click

from threadmark.types import Edit, ValueChange
from threadmark_cli.addresses import Addresses, addresses_of, config_of, ns_option
from threadmark_cli.command import command
from threadmark_cli.completion import thread_ids
from threadmark_cli.describing import DELTA, is_of_the_engine
from threadmark_cli.exits import DONE, WRONG
from threadmark_cli.output import Output, Part, StyleName
from threadmark_cli.output.values import DEFAULT, EVERYTHING, Limits, brief, value_lines
from threadmark_cli.session import Session

_CONTEXT = 3
"""Unchanged lines of context before and after changed ones."""
_SHORT = 60
"""Characters of values that stand side by side."""

_SIGNS: dict[str, tuple[str, StyleName]] = {
    "added": ("+", "added"),
    "removed": ("-", "removed"),
    "equal": (" ", "text"),
}


@command(
    "diff",
    examples="""
    threadmark diff agents.db support-42               # what the newest step changed
    threadmark diff support-42 ~3                      # everything since three before the newest
    threadmark diff support-42 1f1e4c27 1f1e4c43       # any two, also of different branches
    threadmark diff support-42 ~3 --path messages      # one channel, or what stands at a path
    threadmark diff support-42 ~1 --exit-code          # for a script: 1 if there is any difference
    """,
)
@click.argument("thread", shell_complete=thread_ids)
@click.argument("a", required=False)
@click.argument("b", required=False)
@ns_option
@click.option("--path", help="Only what stands at this path, such as a channel.")
@click.option("--limit", type=click.IntRange(min=0), default=1000, show_default=True, help="How many changes at most.")
@click.option("--exit-code", is_flag=True, help="Exit with 1 if there is a difference.")
@click.option("--full", is_flag=True, help="Show everything, however long or deep it is.")
@click.option("--engine", is_flag=True, help="Show LangGraph's own channels, too.")
def diff(
    session: Session,
    thread: str,
    a: str | None,
    b: str | None,
    *,
    ns: str | None,
    path: str | None,
    limit: int,
    exit_code: bool,
    full: bool,
    engine: bool,
) -> int:
    """Show the differences between checkpoints A and B of THREAD.

    Each is an id, the beginning of one, or ~2 for two before the newest. Without B it is the newest; without A, too,
    its parent is compared with it.
    """
    out = session.out
    with session.saver() as saver, out.paged():
        addresses = addresses_of(saver, thread)
        before, after = _pair(addresses, a, b, ns)
        found = saver.diff(config_of(thread, *before), config_of(thread, *after), path=path, limit=limit)
        changes = [each for each in found.changes if engine or not is_of_the_engine(each.path)]
        if out.as_json:
            for change in changes:
                out.record(change_record(thread, before, after, change))
            for channel in found.deltas:
                record = {"thread": thread, "ns": after[0], "a": before[1], "b": after[1]}
                out.record({**record, "path": channel, "kind": "delta"})
        else:
            out.line(
                ("from ", "dim"), (addresses.short(before[1]), "id"), (" to ", "dim"), (addresses.short(after[1]), "id")
            )
            for change in changes:
                _show(out, change, EVERYTHING if full else DEFAULT)
            for channel in found.deltas:
                out.line(("~ ", "warning"), (channel, "name"), ": written to, ", (DELTA, "dim"))
        if found.left_out:
            out.warn(f"{found.left_out:,} further changes are left out: give a larger --limit, or a --path")
    return WRONG if exit_code and (changes or found.deltas or found.left_out) else DONE


def change_record(thread: str, a: tuple[str, str], b: tuple[str, str], change: ValueChange) -> dict[str, Any]:
    """A change as `--json` has it."""
    record = {"thread": thread, "ns": b[0], "a": a[1], "b": b[1], **change._asdict()}
    record["edits"] = [list(edit) for edit in change.edits]
    return record


def _pair(
    addresses: Addresses, a: str | None, b: str | None, ns: str | None
) -> tuple[tuple[str, str], tuple[str, str]]:
    if a is None:
        after = addresses.find(None, ns)
        before = addresses.find(f"{after.id}~1", after.ns)
    else:
        before = addresses.find(a, ns)
        after = addresses.find(b, ns if b else before.ns)
    return (before.ns, before.id), (after.ns, after.id)


def _show(out: Output, change: ValueChange, limits: Limits) -> None:
    if change.edits and any("\n" in edit.text for edit in change.edits):
        out.line(("~ ", "warning"), (change.path, "name"))
        for parts in _edited_lines(change.edits):
            out.line("    ", *parts)
    elif change.edits:
        out.line(("~ ", "warning"), (change.path, "name"), ": ", *_edited_words(change.edits))
    elif change.kind == "changed":
        _show_both(out, change, limits)
    else:
        sign, style = _SIGNS[change.kind]
        value = change.after if change.kind == "added" else change.before
        for parts in value_lines(change.path, value, limits):
            out.line((f"{sign} ", style), *parts)


def _show_both(out: Output, change: ValueChange, limits: Limits) -> None:
    before, after = brief(change.before, _SHORT), brief(change.after, _SHORT)
    if len(before) < _SHORT and len(after) < _SHORT:
        both: list[Part] = [(before, "removed"), " → ", (after, "added")]
        out.line(("~ ", "warning"), (change.path, "name"), ": ", *both)
        return
    out.line(("~ ", "warning"), (change.path, "name"))
    for value, kind in ((change.before, "removed"), (change.after, "added")):
        sign, style = _SIGNS[kind]
        for parts in value_lines("", value, limits):
            out.line((f"  {sign} ", style), *parts)


def _edited_words(edits: Sequence[Edit]) -> Iterator[Part]:
    """A text of one line: removed words in brackets with minus, added ones in braces with plus, as git marks words."""
    for kind, text in edits:
        if kind == "removed":
            yield f"[-{text}-]", "removed"
        elif kind == "added":
            yield f"{{+{text}+}}", "added"
        else:
            yield text


def _edited_lines(edits: Sequence[Edit]) -> Iterator[list[Part]]:
    last = len(edits) - 1
    for place, (kind, text) in enumerate(edits):
        sign, style = _SIGNS[kind]
        lines: list[str | None] = list(text.removesuffix("\n").split("\n"))
        if kind == "equal":
            lines = _context(lines, is_first=place == 0, is_last=place == last)
        for line in lines:
            yield [("…", "dim")] if line is None else [(f"{sign} {line}".rstrip("\r") if line else sign, style)]


def _context(lines: list[str | None], *, is_first: bool, is_last: bool) -> list[str | None]:
    """The lines next to changes; None stands for those that are left out."""
    after, before = 0 if is_first else _CONTEXT, 0 if is_last else _CONTEXT
    if len(lines) <= after + before + 1:
        return lines
    return [*lines[:after], None, *(lines[-before:] if before else [])]
