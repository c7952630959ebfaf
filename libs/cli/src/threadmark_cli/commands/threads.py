"""`threadmark threads`: a listing, which reads no state."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, get_args

import click

from threadmark import SaverProtocol
from threadmark.types import ThreadInfo, ThreadStatus
from threadmark_cli.command import command
from threadmark_cli.output import Column, Part
from threadmark_cli.output.quantities import bytes_text, time_text
from threadmark_cli.parameters import json_object, moment
from threadmark_cli.session import Session

_STATUS_STYLES: Mapping[str, Any] = {"error": "bad", "interrupted": "warning", "unfinished": "warning", "busy": "good"}
_PAGE = 200
_NODES = 3
"""The most nodes of a thread that are named."""


def _status(thread: ThreadInfo) -> Part:
    style, text = _STATUS_STYLES.get(thread.status), str(thread.status)
    if thread.next:
        text = f"{text}: {', '.join([*thread.next[:_NODES], *['...'] * (len(thread.next) > _NODES)])}"
    return (text, style) if style else text


COLUMNS: tuple[Column[ThreadInfo], ...] = (
    Column("THREAD", lambda thread: (thread.id, "id"), cut=True),
    Column("STATUS", _status),
    Column("UPDATED (UTC)", lambda thread: time_text(thread.updated_at)),
    Column("CHECKPOINTS", lambda thread: f"{thread.checkpoints:,}", right=True),
    Column("BYTES", lambda thread: bytes_text(thread.size_bytes), right=True),
    Column("OWNER", lambda thread: thread.owner or "-", cut=True),
    Column("TITLE", lambda thread: thread.title or "", cut=True),
)


@command(
    "threads",
    examples="""
    threadmark threads agents.db                      # the 20 that were updated last
    threadmark threads --status interrupted           # of THREADMARK_URL: those that wait for an answer
    threadmark threads --status unfinished            # those whose runs died
    threadmark threads --text invoice --limit 0       # all with "invoice" in their title or id
    threadmark threads --json --limit 0 | jq -r .id   # every id
    """,
)
@click.option("--text", help="Only those with this in their title, in any case, or in their id, in this case.")
@click.option("--status", type=click.Choice(get_args(ThreadStatus)), help="Only those.")
@click.option("--metadata", metavar="JSON", help="Only those whose metadata has these keys and values.")
@click.option("--since", type=moment, metavar="WHEN", help="Only those updated since then: 1h, 2026-11-20 (UTC).")
@click.option("--until", type=moment, metavar="WHEN", help="Only those updated before then: 1h, 2026-11-20 (UTC).")
@click.option(
    "--sort",
    type=click.Choice(["updated", "-updated", "created", "-created", "id", "-id"]),
    default="-updated",
    show_default=True,
    help="The order; with a minus the greatest comes first.",
)
@click.option("-n", "--limit", type=click.IntRange(min=0), default=20, show_default=True, help="How many; 0 for all.")
def threads(session: Session, limit: int, **filters: Any) -> None:
    """List threads, without reading their states."""
    filters["metadata"] = json_object(filters["metadata"], "--metadata")
    listed = _Listed()
    with session.saver() as saver:
        with session.out.paged():
            session.out.rows(COLUMNS, _threads(session, saver, limit, filters, listed), thread_record)
        if listed.more:
            filters = {name: value for name, value in filters.items() if name != "sort"}
            session.out.note(f"{listed.threads:,} of {saver.count_threads(**filters):,} threads: --limit 0 lists all")


def thread_record(thread: ThreadInfo) -> dict[str, Any]:
    """A thread as `--json` has it."""
    record = thread._asdict()
    del record["extracted"]
    times = {name: value.isoformat() for name, value in record.items() if isinstance(value, datetime)}
    return {**record, **times, "problems": [problem._asdict() for problem in thread.problems]}


@dataclass
class _Listed:
    """The progress of a listing."""

    threads: int = 0
    more: bool = False
    """Whether the limit has left out some."""


def _threads(
    session: Session, saver: SaverProtocol, limit: int, filters: Mapping[str, Any], listed: _Listed
) -> Iterator[ThreadInfo]:
    cursor, left = None, limit
    while True:
        page = saver.list_threads(**filters, limit=min(left, _PAGE) if limit else _PAGE, cursor=cursor)
        yield from page.threads
        for thread in page.threads:
            for problem in thread.problems:
                session.out.warn(f"{problem.location}: {problem.problem}")
        left, cursor = left - len(page.threads), page.cursor
        listed.threads += len(page.threads)
        if cursor is None or (limit and left <= 0):
            listed.more = cursor is not None
            return
