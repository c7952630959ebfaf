"""`threadmark stats` and `threadmark verify`: how much is stored, and whether it is sound."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from threadmark.model import count_text
from threadmark.types import ChannelStats, Problem, Progress, Stats, VerifyReport
from threadmark_cli.command import command
from threadmark_cli.completion import thread_ids
from threadmark_cli.exits import DONE, WRONG, NotThereError
from threadmark_cli.items import items_if_any
from threadmark_cli.output import Column, Output, Part
from threadmark_cli.output.quantities import bytes_text
from threadmark_cli.session import Session

if TYPE_CHECKING:
    from threadmark_store.looking import Items
    from threadmark_store.shapes import StoreVerifyReport

_Channel = tuple[str, ChannelStats]
_CHANNELS: tuple[Column[_Channel], ...] = (
    Column("CHANNEL", lambda item: (item[0], "name"), cut=True),
    Column("VALUES", lambda item: f"{item[1].values:,}", right=True),
    Column("STORED", lambda item: bytes_text(item[1].bytes_stored), right=True),
    Column("WHOLE", lambda item: bytes_text(item[1].bytes_whole), right=True),
)


def _kind(problem: Problem) -> Part:
    return (problem.kind, "warning" if problem.kind == "orphan" else "bad")


_PROBLEMS: tuple[Column[Problem], ...] = (
    Column("KIND", _kind),
    Column("WHERE", lambda problem: problem.location),
    Column("WHAT", lambda problem: problem.problem),
)


@command(
    "stats",
    examples="""
    threadmark stats agents.db                 # everything
    threadmark stats agents.db support-42      # one thread
    threadmark stats --json | jq .bytes_stored
    """,
)
@click.argument("thread", required=False, shell_complete=thread_ids)
def stats(session: Session, thread: str | None) -> None:
    """Count the stored bytes, and those that checkpoints with whole values would take; and the items of stores.

    It reads every row, but no value.
    """
    out = session.out
    with session.saver() as saver, out.progress("counting") as progress:
        found = saver.stats(thread, progress=progress)
        items = items_if_any(saver, out) if thread is None else None
        of_items = items.run(items.stats())._asdict() if items else None
    if thread is not None and not found.threads:
        raise NotThereError(f"there is no thread {thread!r}")
    if out.as_json:
        out.record({**stats_record(thread, found), "items": of_items})
        return
    _show_stats(out, found, of_items)


def stats_record(thread: str | None, found: Stats) -> dict[str, Any]:
    """The figures as `--json` has them."""
    record = {"thread": thread, **found._asdict()}
    record["channels"] = {name: channel._asdict() for name, channel in found.channels.items()}
    record["problems"] = [problem._asdict() for problem in found.problems]
    return record


def _show_stats(out: Output, found: Stats, items: Mapping[str, int] | None) -> None:
    for name in ("threads", "checkpoints", "writes", "segments"):
        out.line((f"{name:12}", "dim"), f"{getattr(found, name):>12,}")
    less = f"  ({found.bytes_whole / found.bytes_stored:.1f} times less)" if found.bytes_stored else ""
    out.line((f"{'stored':12}", "dim"), f"{bytes_text(found.bytes_stored):>12}")
    out.line((f"{'whole':12}", "dim"), f"{bytes_text(found.bytes_whole):>12}", (less, "good"))
    out.line((f"{'overhead':12}", "dim"), f"{bytes_text(found.bytes_overhead):>12}")
    largest = sorted(found.channels.items(), key=lambda item: (-item[1].bytes_whole, item[0]))
    if largest:
        out.line()
        out.rows(_CHANNELS, largest, lambda item: {item[0]: item[1]})
    if items and items["items"]:
        out.line()
        for name, figure in items.items():
            text = bytes_text(figure) if name == "bytes" else f"{figure:,}"
            out.line((f"{name:12}", "dim"), f"{text:>12}")
    for problem in found.problems:
        out.warn(f"{problem.location}: {problem.problem}")


@command(
    "verify",
    examples="""
    threadmark verify agents.db && threadmark backup agents.db copy.db    # it exits with 1 if anything is damaged
    threadmark verify agents.db support-42                  # one thread
    threadmark verify --json | jq -r .location              # of THREADMARK_URL: what is damaged
    """,
)
@click.argument("thread", required=False, shell_complete=thread_ids)
@click.option("--decode", is_flag=True, help="Decode every value as well.")
@click.option("--repair", is_flag=True, help="First make anew what can be made from the rows: the index of Redis.")
def verify(session: Session, thread: str | None, *, decode: bool, repair: bool) -> int:
    """Read everything stored, and report damage. Needs no class of the application.

    The exit code is 1 if anything is damaged. An orphan only costs space.
    """
    out = session.out
    with session.saver(write=repair) as opened, out.progress("verifying") as progress:
        saver = opened.without_classes() if repair else opened
        found = saver.verify(thread, decode=decode, repair=repair, progress=progress)
        items = items_if_any(saver, out) if thread is None else None
        of_items = _verify_items(items, out, decode=decode) if items else None
    if thread is not None and not found.threads:
        raise NotThereError(f"there is no thread {thread!r}")
    problems = [*found.problems, *found.unreadable]
    if of_items:
        problems += [*of_items.problems, *of_items.unreadable]
    damaged = any(problem.kind != "orphan" for problem in problems)
    if out.as_json:
        for problem in problems:
            out.record(problem._asdict())
    else:
        out.rows(_PROBLEMS, problems, Problem._asdict)
        out.line(*_summary(found, of_items, len(problems), damaged=damaged))
    return WRONG if damaged else DONE


def _verify_items(items: "Items", out: Output, *, decode: bool) -> "StoreVerifyReport":
    with out.progress("verifying items") as progress:
        counted = items.verify(decode=decode, progress=lambda done, count: progress(Progress(done, count, "")))
        return items.run(counted)


def _summary(found: VerifyReport, items: "StoreVerifyReport | None", problems: int, *, damaged: bool) -> list[Part]:
    counts = [(found.threads, "thread"), (found.checkpoints, "checkpoint"), (found.writes, "pending write")]
    if items and items.items:
        counts.append((items.items, "item"))
    if items and items.cached:
        counts.append((items.cached, "cached value"))
    looked_at = ", ".join(count_text(*each) for each in counts)
    verdict = count_text(problems, "problem") if problems else "all as written"
    return [f"{looked_at}: ", (verdict, "bad" if damaged else "good")]
