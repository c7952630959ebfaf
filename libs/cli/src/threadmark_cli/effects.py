"""The effects of a thread's steps, and the namespaces of their ledger, which are no subgraphs."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from threadmark import Effects, Saver, SaverProtocol
from threadmark.effects.table import PREFIX
from threadmark.errors import LocatedError
from threadmark.types import EffectInfo, EffectState, Tree, Undo
from threadmark_cli.exits import RefusedError
from threadmark_cli.output import Output, Part

_LEDGER = re.compile(re.escape(PREFIX) + "[0-9a-f]{32}")
"""The namespace of a call site. That of a subgraph named "effects" has the id of a task, which has hyphens."""

STYLES: Mapping[EffectState, Any] = {"unknown": "warning", "failed": "bad", "running": "good", "not done": "dim"}
_ORDER: Sequence[EffectState] = ("unknown", "failed", "running", "not done", "done")

EffectsOfSteps = Mapping[str, Sequence[EffectInfo]]
"""The effects of each checkpoint's tasks, which make the step after it, by its id."""


def is_ledger(ns: str) -> bool:
    """Whether a namespace has the claims of effects."""
    return _LEDGER.fullmatch(ns) is not None


def without_ledgers(tree: Tree) -> Tree:
    """Return the checkpoints of the graph and its subgraphs."""
    kept = [place for place, branch in enumerate(tree.branches) if not is_ledger(branch.ns)]
    if len(kept) == len(tree.branches):
        return tree
    new = {old: place for place, old in enumerate(kept)}
    nodes = [node._replace(branch=new[node.branch]) for node in tree.nodes if not is_ledger(node.ns)]
    return tree._replace(nodes=nodes, branches=[tree.branches[place] for place in kept])


def effects_in(saver: SaverProtocol) -> Effects:
    """Return the effects of a database. LangGraph's own has none."""
    if not isinstance(saver, Saver):
        raise RefusedError("this is LangGraph's own database, which has no effects")
    return Effects(saver)


def effects_of_steps(saver: SaverProtocol, thread_id: str, out: Output) -> EffectsOfSteps:
    """Return the effects of a thread's steps. Damage is reported."""
    info = saver.get_thread(thread_id) if isinstance(saver, Saver) else None
    if info is None or info.namespaces <= 1:
        return {}
    try:
        return by_step(effects_in(saver).list(thread_id))
    except LocatedError as error:
        out.warn(f"the effects cannot be read: {error}")
        return {}


def by_step(effects: Iterable[EffectInfo]) -> EffectsOfSteps:
    """Return effects by the checkpoints whose tasks have asked for them, the first one first."""
    found: dict[str, list[EffectInfo]] = {}
    for effect in sorted(effects, key=lambda each: each.claimed_at):
        for checkpoint_id in dict.fromkeys(effect.checkpoint_ids):
            found.setdefault(checkpoint_id, []).append(effect)
    return found


def effects_left(saver: SaverProtocol, config: Mapping[str, Any]) -> Sequence[Undo]:
    """Return the effects that a return to a checkpoint leaves behind, newest first."""
    place = config["configurable"]
    info = saver.get_thread(place["thread_id"])
    if place["checkpoint_ns"] or info is None or info.namespaces <= 1:
        return []
    return effects_in(saver.without_classes()).to_undo(dict(config))


def effect_signs(effects: Sequence[EffectInfo]) -> list[Part]:
    """A word about the effects of a step, none if it has none."""
    if not effects:
        return []
    counts = Counter(effect.state for effect in effects)
    states = [state for state in _ORDER if counts[state]]
    text = ", ".join(f"{counts[state]} {state}" for state in states)
    return [(f"effects: {text}", STYLES.get(states[0], "dim"))]


def effect_record(effect: EffectInfo) -> dict[str, Any]:
    """An effect as `--json` has it."""
    return {
        "thread": effect.thread_id,
        "id": effect.id,
        "name": effect.name,
        "state": effect.state,
        "key": effect.key,
        "claimed_at": effect.claimed_at.isoformat(),
        "settled_at": effect.settled_at and effect.settled_at.isoformat(),
        "step": effect.step,
        "node": effect.node,
        "holder": effect.holder,
        "error": effect.error,
        "undo": effect.undo,
        "checkpoints": [*effect.checkpoint_ids],
    }
