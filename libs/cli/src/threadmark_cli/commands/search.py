"""`threadmark search`: where a text occurs in a thread."""

from collections.abc import Iterator

import click

from threadmark import SaverProtocol
from threadmark.types import Match
from threadmark_cli.addresses import addresses_of
from threadmark_cli.command import command
from threadmark_cli.exits import MISSING
from threadmark_cli.output import Part, one_line
from threadmark_cli.session import Session

_PAGE = 50


@command(
    "search",
    examples="""
    threadmark search agents.db support-42 invoice
    threadmark search support-42 "not found" --ns ""       # not in subgraphs
    threadmark search support-42 4711 --limit 0 --json     # every place, one object a line
    """,
)
@click.argument("thread")
@click.argument("text")
@click.option("--ns", metavar="NAMESPACE", help='Only this namespace, "" for the graph\'s own (by default all).')
@click.option("-n", "--limit", type=click.IntRange(min=0), default=50, show_default=True, help="How many; 0 for all.")
def search(session: Session, thread: str, text: str, *, ns: str | None, limit: int) -> int | None:
    """Find TEXT, in any case, in the values, the pending writes and the metadata of THREAD.

    Each place is named once, with the checkpoint that first had it there. The exit code is 3 if there is none.
    """
    out, found = session.out, 0
    with session.saver() as saver, out.paged():
        addresses = addresses_of(saver, thread)
        for match in _matches(saver, thread, text, ns, limit):
            found += 1
            if out.as_json:
                out.record({"thread": thread, **match._asdict()})
                continue
            where = f"{match.ns}: {match.path}" if match.ns else match.path
            kind = "" if match.place == "values" else f" ({match.place})"
            around: list[Part] = [one_line(match.before), (one_line(match.text), "bad"), one_line(match.after)]
            out.line((addresses.short(match.id), "id"), "  ", (where, "name"), (kind, "dim"), "  ", *around)
    return None if found else MISSING


def _matches(saver: SaverProtocol, thread: str, text: str, ns: str | None, limit: int) -> Iterator[Match]:
    cursor, left = None, limit
    while True:
        page = saver.search(thread, text, ns=ns, limit=min(left, _PAGE) if limit else _PAGE, cursor=cursor)
        yield from page.matches
        left, cursor = left - len(page.matches), page.cursor
        if cursor is None or (limit and left <= 0):
            return
