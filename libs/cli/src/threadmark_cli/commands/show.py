"""`threadmark show`: one checkpoint, its state as a tree and its tasks' writes; or one part of it."""

from collections.abc import Sequence
from typing import Any

import click

from threadmark import CheckpointTuple, ConfigError, SaverProtocol
from threadmark.saver.paths import Path
from threadmark.types import EffectInfo
from threadmark_cli.addresses import Addresses, addresses_of, at_option, config_of, ns_option, thread_or_newest
from threadmark_cli.command import command
from threadmark_cli.completion import thread_ids
from threadmark_cli.describing import DELTA, channels_without_value, is_of_the_engine, kind_of_write
from threadmark_cli.effects import STYLES, effect_record, effects_of_steps
from threadmark_cli.exits import NotThereError
from threadmark_cli.output import Output, Part
from threadmark_cli.output.quantities import time_text
from threadmark_cli.output.values import DEFAULT, EVERYTHING, Limits, brief, value_lines
from threadmark_cli.session import Session

_NOTHING = object()
_METADATA = 200
"""Characters of the metadata in the heading."""

_WRITE_STYLES: dict[str, Any] = {"error": "bad", "interrupt": "warning", "resume": "good"}


@command(
    "show",
    examples="""
    threadmark show agents.db support-42                        # the newest checkpoint
    threadmark show support-42 --at ~2                          # two before it
    threadmark show support-42 "messages[-1].content"           # one part of it, read alone
    threadmark show support-42 messages --full                  # a channel, nothing left out
    threadmark show support-42 --json | jq .state.messages
    """,
)
@click.argument("thread", required=False, shell_complete=thread_ids)
@click.argument("path", required=False)
@at_option
@ns_option
@click.option("--full", is_flag=True, help="Show everything, however long or deep it is.")
@click.option("--engine", is_flag=True, help="Show LangGraph's own channels, too.")
def show(
    session: Session, thread: str | None, path: str | None, *, at: str | None, ns: str | None, full: bool, engine: bool
) -> None:
    """Show a checkpoint of THREAD: its state, its pending writes, errors and open questions.

    With PATH, such as messages[-1].content, show only the part there, and read only that.
    """
    out, limits = session.out, EVERYTHING if full else DEFAULT
    with session.saver() as saver, out.paged():
        thread_id = thread_or_newest(saver, thread)
        addresses = addresses_of(saver, thread_id)
        node = addresses.find(at, ns)
        config = config_of(thread_id, node.ns, node.id)
        if path is not None:
            _show_part(out, saver, config, path, limits)
            return
        found = saver.get_tuple(config)
        if found is None:
            raise NotThereError(f"the checkpoint {node.id} was removed just now")
        deltas = _delta_channels(saver, config, found)
        effects = () if node.ns else effects_of_steps(saver, thread_id, out).get(node.id, ())
        if out.as_json:
            out.record({**checkpoint_record(found), "deltas": deltas, "effects": [*map(effect_record, effects)]})
            return
        _show_heading(out, addresses, found)
        _show_state(out, found, limits, engine=engine)
        for channel in deltas:
            out.line((channel, "name"), ": ", (DELTA, "dim"))
        _show_writes(out, found, limits, engine=engine)
        _show_effects(out, effects)


def checkpoint_record(found: CheckpointTuple) -> dict[str, Any]:
    """A checkpoint as `--json` has it."""
    place = found.config["configurable"]
    parent = found.parent_config["configurable"]["checkpoint_id"] if found.parent_config else None
    return {
        "thread": place["thread_id"],
        "ns": place["checkpoint_ns"],
        "id": place["checkpoint_id"],
        "parent": parent,
        "metadata": found.metadata,
        "state": found.checkpoint["channel_values"],
        "versions": found.checkpoint["channel_versions"],
        "writes": [
            {"task_id": task_id, "channel": channel, "kind": kind_of_write(channel), "value": value}
            for task_id, channel, value in found.pending_writes or []
        ],
    }


def _delta_channels(saver: SaverProtocol, config: dict[str, Any], found: CheckpointTuple) -> list[str]:
    """The channels that are stored as changes. Like empty ones, they have a version and no value."""
    return [channel for channel in channels_without_value(found.checkpoint) if _is_delta(saver, config, channel)]


def _is_delta(saver: SaverProtocol, config: dict[str, Any], channel: str) -> bool:
    try:
        saver.extract(config, str(Path(channel, ())))
    except ConfigError:  # only the graph can make its value
        return True
    return False


def _show_part(out: Output, saver: SaverProtocol, config: dict[str, Any], path: str, limits: Limits) -> None:
    value = saver.extract(config, path, _NOTHING)
    if value is _NOTHING:
        raise NotThereError(f"there is nothing at {path!r} in this checkpoint")
    if out.as_json:
        out.record({**_place(config), "path": path, "value": value})
    elif isinstance(value, str):
        for line in value.split("\n"):
            out.line(line.removesuffix("\r"))
    else:
        for parts in value_lines("", value, limits):
            out.line(*parts)


def _place(config: dict[str, Any]) -> dict[str, Any]:
    configurable = config["configurable"]
    names = {"thread": "thread_id", "ns": "checkpoint_ns", "id": "checkpoint_id"}
    return {short: configurable[name] for short, name in names.items()}


def _show_heading(out: Output, addresses: Addresses, found: CheckpointTuple) -> None:
    place = found.config["configurable"]
    out.line(("checkpoint ", "dim"), (place["checkpoint_id"], "id"))
    out.line(("thread     ", "dim"), place["thread_id"])
    if place["checkpoint_ns"]:
        out.line(("namespace  ", "dim"), place["checkpoint_ns"])
    if found.parent_config:
        out.line(("parent     ", "dim"), found.parent_config["configurable"]["checkpoint_id"])
    node = addresses.find(place["checkpoint_id"], place["checkpoint_ns"])
    out.line(("created    ", "dim"), f"{time_text(node.created_at)} UTC")
    metadata = {key: value for key, value in found.metadata.items() if value not in ({}, None)}
    out.line(("metadata   ", "dim"), brief(metadata, _METADATA))


def _show_state(out: Output, found: CheckpointTuple, limits: Limits, *, engine: bool) -> None:
    out.line()
    values = found.checkpoint["channel_values"]
    for channel, value in values.items():
        if engine or not is_of_the_engine(channel) or channel == "__start__":
            for parts in value_lines(channel, value, limits):
                out.line(*parts)


def _show_writes(out: Output, found: CheckpointTuple, limits: Limits, *, engine: bool) -> None:
    writes = [each for each in found.pending_writes or [] if engine or not each[1].startswith("branch:to:")]
    if not writes:
        return
    out.line()
    out.line(("pending writes", "heading"))
    for task_id, channel, value in writes:
        kind = kind_of_write(channel)
        label = channel if kind == "write" else kind
        heading, *rest = value_lines(label, value, limits)
        out.line("  ", *_recoloured(heading, _WRITE_STYLES.get(kind)), (f"  (task {task_id[:8]})", "dim"))
        for parts in rest:
            out.line("  ", *parts)


def _show_effects(out: Output, effects: Sequence[EffectInfo]) -> None:
    if not effects:
        return
    out.line()
    out.line(("effects of the next step", "heading"))
    for effect in effects:
        style = STYLES.get(effect.state)
        state: Part = (effect.state, style) if style else effect.state
        ended = f" to {time_text(effect.settled_at)}" if effect.settled_at else ""
        error = f"  {effect.error}" if effect.error else ""
        times = f"  {time_text(effect.claimed_at)}{ended}"
        out.line("  ", (effect.name, "name"), "  ", state, error, times, (f"  (key {effect.key})", "dim"))


def _recoloured(parts: list[Any], style: Any) -> list[Any]:
    return [(each[0], style) if style and isinstance(each, tuple) and each[1] == "name" else each for each in parts]
