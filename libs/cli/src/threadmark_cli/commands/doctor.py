"""`threadmark doctor`: checks of the connection and of the risks to threads, with the remedies."""

import time
from collections.abc import Iterator
from typing import Any

import click

from threadmark import (
    MissingDependencyError,
    Saver,
    SaverProtocol,
    StoreError,
    ThreadmarkError,
    TransientStoreError,
)
from threadmark.model import count_text
from threadmark_cli.command import command
from threadmark_cli.diagnosis import Finding, Level, of_file, of_packages, of_report
from threadmark_cli.exits import DONE, FAILED, WRONG
from threadmark_cli.opening import file_of, open_for_reading, parts_of, printable_url
from threadmark_cli.output import Output, StyleName
from threadmark_cli.session import Session

_STYLES: dict[Level, StyleName] = {"ok": "good", "warning": "warning", "fault": "bad"}


@command(
    "doctor",
    examples="""
    threadmark doctor agents.db
    threadmark doctor postgresql://user@host/agents
    threadmark doctor --json | jq -r 'select(.level != "ok") | .finding'   # of THREADMARK_URL
    """,
)
@click.option("--strict", is_flag=True, help="Exit with 1 for a warning, too.")
def doctor(session: Session, *, strict: bool) -> int:
    """Look at the connection, the versions, the settings and other tables in the database, and name the remedies.

    The exit code is 1 if something is at fault, and 5 if the database cannot be reached. Nothing is changed.
    """
    out, worst = session.out, {"ok": 0, "warning": 0, "fault": 0}
    unreachable = False
    try:
        for finding in _findings(session):
            worst[finding.level] += 1
            _show(out, finding)
    except StoreError as error:
        unreachable = True
        _show(out, Finding("connection", "fault", str(error), _where_to_look(session.url, error)))
    if unreachable:
        return FAILED
    return WRONG if worst["fault"] or (strict and worst["warning"]) else DONE


def _where_to_look(url: str, error: StoreError) -> str:
    """Return the remedy for an error that kept the command from looking at the threads."""
    if file_of(url) is not None:
        return "look at the file, and at who may use it"
    if isinstance(error, TransientStoreError):
        return "look whether the server runs, and at the URL"
    return "the server answers: look at user, password and database in the URL, and at what this user may do"


def _findings(session: Session) -> Iterator[Finding]:
    yield from of_packages()
    for url in parts_of(session.url) or [session.url]:
        path = file_of(url)
        if path is not None:
            yield from of_file(path)
    began = time.perf_counter()
    with session.saver(expect_tables=False) as saver:
        has_tables = saver.has_tables()
        took = (time.perf_counter() - began) * 1000
        yield Finding("connection", "ok", f"{session.printable_url} answers ({took:.0f} ms to the first answer)")
        report = getattr(saver, "report", None)
        if report is not None:
            yield from of_report(report(), full="durability" not in session.saver_options())
        for part in parts_of(session.url):
            yield from _of_part(part)
        yield from _of_tables(saver, has_tables=has_tables, ours=isinstance(saver, Saver))
        if has_tables:
            if report is not None:
                yield from _of_format(saver)
            yield from _of_threads(saver)


def _of_part(url: str) -> Iterator[Finding]:
    """The report of a database of a pair, or of the one behind a cache."""
    name = printable_url(url)
    try:
        with open_for_reading(url, {}) as saver:
            report = getattr(saver, "report", None)
            if report is not None:
                yield from (each._replace(finding=f"{name}: {each.finding}") for each in of_report(report()))
    except StoreError as error:
        yield Finding("database", "fault", f"{name}: {error}", "look whether the server runs, and at its URL")


def _of_format(saver: SaverProtocol) -> Iterator[Finding]:
    """Whether this release could write a newer format than the database is written in."""
    due = saver.upgrade(dry_run=True)
    if due.after > due.before:
        finding = f"written in format {due.before}, and this release can write format {due.after}"
        way_out = f"when no process older than {due.release} is left: `threadmark upgrade`"
        yield Finding("format", "ok", finding, way_out)


def _of_tables(saver: SaverProtocol, *, has_tables: bool, ours: bool) -> Iterator[Finding]:
    move = "`threadmark migrate` moves them; until then they are read, and never changed"
    if not ours:
        yield Finding("tables", "warning", "the threads are in LangGraph's own tables", move)
    elif not has_tables:
        made = "the first put makes them, or `threadmark setup`"
        yield Finding("tables", "warning", "there are no tables of Threadmark here yet", made)
    elif saver.has_only_langgraph_data():
        yield Finding("tables", "warning", "LangGraph's own saver has threads here, and Threadmark has none", move)


def _of_threads(saver: SaverProtocol) -> Iterator[Finding]:
    """Whether the newest thread can be read, which needs the right keys."""
    threads = count_text(saver.count_threads(), "thread")
    newest = saver.list_threads(limit=1).threads
    try:
        for thread in newest:
            saver.get_tuple({"configurable": {"thread_id": thread.id}})
    except StoreError:
        raise
    except ThreadmarkError as error:
        way_out = "`threadmark verify` says what is damaged; a sealed database needs --keyring"
        if isinstance(error, MissingDependencyError):  # nothing is damaged
            way_out = "install the package that it names"
        yield Finding("threads", "fault", f"the newest of {threads} cannot be read: {error}", way_out)
    else:
        yield Finding("threads", "ok", threads + (", the newest of which reads well" if newest else ""))


def _show(out: Output, finding: Finding) -> None:
    if out.as_json:
        record: dict[str, Any] = finding._asdict()
        out.record(record)
        return
    level = f"{finding.level:8}"
    out.line((level, _STYLES[finding.level]), (f"{finding.check:12}", "dim"), finding.finding)
    if finding.way_out:
        out.line(" " * (len(level) + 12), ("→ ", "dim"), finding.way_out)
