"""`threadmark blame`: the checkpoint that first held a state's present value."""

from collections.abc import Iterator, Mapping
from typing import Any

import click

from threadmark import ConfigError, SaverProtocol
from threadmark.types import Blame, ObjectView
from threadmark_cli.addresses import Addresses, addresses_of, at_option, config_of, ns_option
from threadmark_cli.command import command
from threadmark_cli.completion import thread_ids
from threadmark_cli.describing import entry_record, what_ran
from threadmark_cli.exits import NotThereError
from threadmark_cli.output import Column, Output
from threadmark_cli.output.json_values import quoted
from threadmark_cli.output.quantities import time_text
from threadmark_cli.output.values import brief, value_lines
from threadmark_cli.session import Session


@command(
    "blame",
    examples="""
    threadmark blame agents.db support-42 refund              # which step set it
    threadmark blame support-42 "messages[-1].content"
    threadmark blame support-42 messages --each               # a line for each message
    threadmark blame support-42 refund --at ~4                # what it was four checkpoints ago
    """,
)
@click.argument("thread", shell_complete=thread_ids)
@click.argument("path")
@at_option
@ns_option
@click.option("--each", is_flag=True, help="A line for each item or field of what stands there.")
def blame(session: Session, thread: str, path: str, *, at: str | None, ns: str | None, each: bool) -> None:
    """Show which checkpoint of THREAD first held the present value at PATH, and the nodes that ran then."""
    out = session.out
    with session.saver() as saver, out.paged():
        addresses = addresses_of(saver, thread)
        node = addresses.find(at, ns)
        config = config_of(thread, node.ns, node.id)
        found = _expected(saver, config, path)
        blames = _of_parts(saver, config, found) if each else iter([found])
        if out.as_json:
            for one in blames:
                out.record(blame_record(thread, one))
        elif each:
            out.rows(_columns(addresses), blames, lambda one: blame_record(thread, one))
        else:
            _show(out, addresses, found)


def blame_record(thread: str, found: Blame) -> dict[str, Any]:
    """The record for `--json`."""
    return {"path": found.path, "value": found.value, "since": entry_record(thread, found.entry)}


def _expected(saver: SaverProtocol, config: dict[str, Any], path: str) -> Blame:
    found = saver.blame(config, path)
    if found is None:
        raise NotThereError(f"there is nothing at {path!r} in this checkpoint")
    return found


def _of_parts(saver: SaverProtocol, config: dict[str, Any], found: Blame) -> Iterator[Blame]:
    value = found.value
    if isinstance(value, ObjectView):
        steps = [f".{name}" if name.isidentifier() else f"[{quoted(name)}]" for name in value.fields]
    elif isinstance(value, Mapping):
        steps = [f"[{quoted(key)}]" for key in value if isinstance(key, str)]
    elif isinstance(value, list | tuple):
        steps = [f"[{index}]" for index in range(len(value))]
    else:
        raise ConfigError(f"what stands at {found.path!r} has no parts: leave out --each")
    for step in steps:
        one = saver.blame(config, found.path + step)
        if one is not None:
            yield one


def _columns(addresses: Addresses) -> tuple[Column[Blame], ...]:
    return (
        Column("SINCE", lambda one: (addresses.short(one.entry.id), "id")),
        Column("CREATED (UTC)", lambda one: time_text(one.entry.created_at)),
        Column("RAN", lambda one: (what_ran(one.entry), "name"), cut=True),
        Column("PATH", lambda one: one.path, cut=True),
        Column("VALUE", lambda one: brief(one.value), cut=True),
    )


def _show(out: Output, addresses: Addresses, found: Blame) -> None:
    for parts in value_lines(found.path, found.value):
        out.line(*parts)
    entry = found.entry
    when = f"  {time_text(entry.created_at)}  "
    out.line(("since ", "dim"), (addresses.short(entry.id), "id"), (when, "dim"), (what_ran(entry), "name"))
