"""`threadmark effects`: the calls that are made once, to list, show and settle them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast, get_args

import click

from threadmark import Effects, SaverProtocol
from threadmark.model import count_text
from threadmark.types import EffectInfo, EffectState
from threadmark_cli.addresses import config_of, expect_thread
from threadmark_cli.command import command
from threadmark_cli.commands.editing import yes_option
from threadmark_cli.completion import thread_ids
from threadmark_cli.effects import STYLES, effect_record, effects_in
from threadmark_cli.exits import NotThereError
from threadmark_cli.output import Column, Part
from threadmark_cli.output.quantities import time_text
from threadmark_cli.output.values import DEFAULT, value_lines
from threadmark_cli.parameters import json_value_of
from threadmark_cli.session import Session

_STATES = {state.replace(" ", "-"): state for state in get_args(EffectState)}
_OUTCOMES = ("done", "not-done", "failed")
_MOST_NAMED = 5

Outcome = Literal["done", "not done", "failed"]


def _state(effect: EffectInfo) -> Part:
    style = STYLES.get(effect.state)
    return (effect.state, style) if style else effect.state


_COLUMNS: tuple[Column[EffectInfo], ...] = (
    Column("THREAD", lambda effect: (effect.thread_id, "id"), cut=True),
    Column("EFFECT", lambda effect: (effect.name, "name"), cut=True),
    Column("STATE", _state),
    Column("BEGUN (UTC)", lambda effect: time_text(effect.claimed_at)),
    Column("ENDED (UTC)", lambda effect: time_text(effect.settled_at) if effect.settled_at else "-"),
    Column("NODE", lambda effect: effect.node or "-", cut=True),
    Column("KEY", lambda effect: (effect.key, "id")),
)


@command(
    "effects",
    examples="""
    threadmark effects agents.db                                  # the unknown ones of all threads
    threadmark effects order-1 --state all                        # of THREADMARK_URL: every one of a thread
    threadmark effects order-1 3f1e                               # one of them, by the beginning of its key
    threadmark effects order-1 3f1e --settle done --value '{"sent": true}'
    threadmark effects order-1 3f1e --settle not-done             # the next attempt makes the call
    threadmark effects order-1 3f1e --settle failed --reason "card refused"
    """,
)
@click.argument("thread", required=False, shell_complete=thread_ids)
@click.argument("effect", required=False)
@click.option("--state", type=click.Choice([*_STATES, "all"]), help="Only those in this state [default: unknown].")
@click.option("--settle", type=click.Choice(_OUTCOMES), help="Say what became of the effect.")
@click.option("--value", metavar="JSON", help="The result of a call that is done, or @FILE with it [default: null].")
@click.option("--reason", metavar="TEXT", help="Why a call has failed.")
@yes_option
def effects(
    session: Session,
    *,
    thread: str | None,
    effect: str | None,
    state: str | None,
    settle: str | None,
    value: str | None,
    reason: str | None,
    yes: bool,
) -> None:
    """List the effects of THREAD or of all threads, those whose outcome is unknown; show or settle one.

    EFFECT is the beginning of its key or of its id, or its name if the thread has one of that name.
    """
    if settle is None and (value, reason) != (None, None):
        raise click.UsageError("--value and --reason are for --settle.")
    if (value is not None and settle != "done") or (reason is not None and settle != "failed"):
        raise click.UsageError("--value is for --settle done, --reason for --settle failed.")
    if settle == "failed" and not reason:
        raise click.UsageError("--settle failed needs a --reason: the next attempt raises it as an error.")
    if settle is not None and (thread is None or effect is None):
        raise click.UsageError("Name the THREAD and the EFFECT to settle.")
    with session.saver(write=settle is not None) as saver:
        ledger = effects_in(saver)
        if thread is not None:
            expect_thread(saver, thread)
        if thread is None or effect is None:
            with session.out.paged():
                _list(session, ledger, thread, state or "unknown")
            return
        found = _find(ledger.list(thread), thread, effect)
        if settle is None:
            with session.out.paged():
                _show(session, saver, found)
            return
        outcome = json_value_of(value, "--value") if value is not None else reason
        _settle(session, ledger, found, cast("Outcome", _STATES[settle]), outcome, yes=yes)


def _list(session: Session, ledger: Effects, thread: str | None, state: str) -> None:
    every = ledger.list(thread)
    chosen = [effect for effect in every if state == "all" or effect.state == _STATES[state]]
    session.out.rows(_COLUMNS, chosen, effect_record)
    running = Counter(effect.state for effect in every)["running"]
    if state == "unknown" and running:
        are = f"{count_text(running, 'effect')} {'is' if running == 1 else 'are'} running"
        session.out.note(f"{are}, perhaps in a process of another machine that has ended: --state running lists them")


def _find(effects: Sequence[EffectInfo], thread: str, text: str) -> EffectInfo:
    """The effect that the command line means."""
    found = [effect for effect in effects if effect.key.startswith(text) or effect.id.startswith(text)]
    found = found or [effect for effect in effects if effect.name == text]
    if not found:
        raise NotThereError(f"thread {thread!r} has no effect {text!r}: --state all lists those that it has")
    if len(found) > 1:
        keys = ", ".join(effect.key for effect in found[:_MOST_NAMED])
        raise NotThereError(f"{text!r} means {len(found)} effects, with keys such as {keys}: write more of one")
    return found[0]


def _show(session: Session, saver: SaverProtocol, effect: EffectInfo) -> None:
    out, (is_there, result) = session.out, _result(saver, effect)
    if out.as_json:
        out.record({**effect_record(effect), **({"value": result} if is_there else {})})
        return
    facts: Mapping[str, Part | None] = {
        "effect": (effect.name, "name"),
        "state": _state(effect),
        "key": (effect.key, "id"),
        "id": (effect.id, "id"),
        "thread": effect.thread_id,
        "node": effect.node,
        "step": None if effect.step is None else str(effect.step),
        "begun": f"{time_text(effect.claimed_at)} UTC",
        "ended": None if effect.settled_at is None else f"{time_text(effect.settled_at)} UTC",
        "claimed by": effect.holder,
        "error": None if effect.error is None else (effect.error, "bad"),
        "undo with": effect.undo,
        "checkpoints": ", ".join(effect.checkpoint_ids) or None,
    }
    for name, fact in facts.items():
        if fact is not None:
            out.line((f"{name:<13}", "dim"), fact)
    if is_there:
        out.line()
        for parts in value_lines("result", result, DEFAULT):
            out.line(*parts)


def _result(saver: SaverProtocol, effect: EffectInfo) -> tuple[bool, Any]:
    """Whether a call has a result, and the result."""
    ns, _, number = effect.id.rpartition("/")
    found = saver.get_tuple(config_of(effect.thread_id, f"effects:{ns}", None)) if effect.state == "done" else None
    values = {} if found is None else found.checkpoint["channel_values"]
    return f"value:{number}" in values, values.get(f"value:{number}")


def _settle(session: Session, ledger: Effects, effect: EffectInfo, state: Outcome, outcome: Any, *, yes: bool) -> None:
    named = f"{effect.name!r} of thread {effect.thread_id!r} (key {effect.key})"
    if effect.state == "running":
        question = f"Effect {named} may still run, in {effect.holder}. Its result is refused then. Settle it?"
        session.out.confirm(question, yes=yes)
    settled = ledger.settle(effect, state, outcome)
    if session.out.as_json:
        session.out.record(effect_record(settled))
    else:
        session.out.line(
            "settled ", (effect.name, "name"), f" ({effect.key}): {effect.state} before, now ", _state(settled)
        )
