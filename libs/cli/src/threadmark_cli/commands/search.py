"""`threadmark search`: the places of a text in a thread."""

from collections.abc import Iterator
from dataclasses import dataclass

import click

from threadmark import SaverProtocol
from threadmark.model import count_text
from threadmark.types import Match, Problem
from threadmark_cli.addresses import Addresses, addresses_of
from threadmark_cli.command import command
from threadmark_cli.completion import thread_ids
from threadmark_cli.describing import is_of_the_engine, short_ns
from threadmark_cli.exits import MISSING, WRONG
from threadmark_cli.output import Output, Part, one_line
from threadmark_cli.session import Session

_PAGE = 50


@dataclass
class _Passage:
    """A text that was found, with the text around it."""

    first: Match
    """The place that is named: the newest in a value, or if there is none, the newest."""
    count: int = 1


@command(
    "search",
    examples="""
    threadmark search agents.db support-42 invoice
    threadmark search support-42 "not found" --ns ""       # not in subgraphs
    threadmark search support-42 4711 --every              # every place, LangGraph's own channels too
    threadmark search support-42 4711 --limit 0 --json     # the same, one object a line
    """,
)
@click.argument("thread", shell_complete=thread_ids)
@click.argument("text")
@click.option("--ns", metavar="NAMESPACE", help='Only this namespace, "" for the graph\'s own (by default all).')
@click.option("--every", is_flag=True, help="A line for each place, LangGraph's own channels too.")
@click.option("-n", "--limit", type=click.IntRange(min=0), default=50, show_default=True, help="How many; 0 for all.")
def search(session: Session, thread: str, text: str, *, ns: str | None, every: bool, limit: int) -> int | None:
    """Find TEXT, in any case, in the values, the pending writes and the metadata of THREAD.

    A text in several places is shown once, with one of them and the number of others. Each place is named with
    the checkpoint that first had it there. The exit code is 3 if there is none, and 1 if something cannot be read.
    """
    out = session.out
    with session.saver() as saver:
        addresses = addresses_of(saver, thread)
        problems: list[Problem] = []
        matches = _matches(saver, thread, text, addresses.ns(ns) if ns else ns, problems)
        with out.paged():
            if out.as_json or every:
                found, is_cut = _show_every(out, addresses, thread, matches, limit)
            else:
                found, is_cut = _show_passages(out, addresses, matches, limit)
        if is_cut:
            out.note(f"there are more than {found:,}: --limit 0 shows all")
    for problem in problems:
        out.warn(f"{problem.location}: {problem.problem}")
    if problems:  # the text may be in what could not be read
        return WRONG
    return None if found else MISSING


def _show_every(
    out: Output, addresses: Addresses, thread: str, matches: Iterator[Match], limit: int
) -> tuple[int, bool]:
    """Show every place. Returns how many, and whether there are more."""
    found = 0
    for match in matches:
        if limit and found == limit:
            return found, True
        found += 1
        if out.as_json:
            out.record({"thread": thread, **match._asdict()})
        else:
            out.line(*_described(addresses, match))
    return found, False


def _show_passages(out: Output, addresses: Addresses, matches: Iterator[Match], limit: int) -> tuple[int, bool]:
    """Show each text once. Returns how many, and whether there are more."""
    passages: dict[tuple[str, str, str], _Passage] = {}
    is_cut = False
    for match in matches:
        if is_of_the_engine(match.path):
            continue
        key = match.before, match.text, match.after
        passage = passages.get(key)
        if passage is None:
            if limit and len(passages) == limit:
                is_cut = True
                break
            passages[key] = _Passage(match)
            continue
        passage.count += 1
        if passage.first.place != "values" and match.place == "values":
            passage.first = match
    for passage in passages.values():
        more = count_text(passage.count - 1, "more place")
        out.line(*_described(addresses, passage.first), (f"  ({more})" if passage.count > 1 else "", "dim"))
    return len(passages), is_cut


def _described(addresses: Addresses, match: Match) -> list[Part]:
    where = f"{short_ns(match.ns)}: {match.path}" if match.ns else match.path
    kind = "" if match.place == "values" else f" ({match.place})"
    around: list[Part] = [one_line(match.before), (one_line(match.text), "bad"), one_line(match.after)]
    return [(addresses.short(match.id), "id"), "  ", (where, "name"), (kind, "dim"), "  ", *around]


def _matches(saver: SaverProtocol, thread: str, text: str, ns: str | None, problems: list[Problem]) -> Iterator[Match]:
    """Yield all matches, and note what could not be read, once each."""
    cursor = None
    while True:
        page = saver.search(thread, text, ns=ns, limit=_PAGE, cursor=cursor)
        problems += [each for each in page.problems if each not in problems]
        yield from page.matches
        cursor = page.cursor
        if cursor is None:
            return
