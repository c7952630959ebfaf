"""The effects of steps as JSON for the page."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from threadmark import Effects, Saver, SaverProtocol
from threadmark.errors import LocatedError
from threadmark.types import EffectInfo, HistoryEntry, Problem
from threadmark_cli.effects import EffectsOfSteps, by_step
from threadmark_cli.page.shapes import time_text


class StepEffects:
    """The effects of a saver's threads."""

    def __init__(self, saver: SaverProtocol) -> None:
        self._saver = saver
        self._effects = Effects(saver) if isinstance(saver, Saver) else None

    async def of(self, thread: str, entry: HistoryEntry) -> tuple[Sequence[Mapping[str, Any]], Problem | None]:
        """Return the effects of a checkpoint's tasks, and the reason if they cannot be read."""
        try:
            found = {} if entry.ns else await self._of_thread(thread)
        except LocatedError as error:
            return [], Problem("damaged", error.location, f"the effects cannot be read: {error.problem}")
        return [effect_shape(effect) for effect in found.get(entry.id, ())], None

    async def states(self, thread: str, entries: Iterable[HistoryEntry]) -> Mapping[str, Sequence[str]]:
        """Return the states of the effects of checkpoints of the graph's own namespace, by their ids."""
        try:
            found = await self._of_thread(thread)
        except LocatedError:  # the view of the checkpoint reports the damage
            return {}
        return {entry.id: [effect.state for effect in found.get(entry.id, ())] for entry in entries if not entry.ns}

    async def _of_thread(self, thread: str) -> EffectsOfSteps:
        info = None if self._effects is None else await self._saver.aget_thread(thread)
        if self._effects is None or info is None or info.namespaces <= 1:
            return {}
        return by_step(await self._effects.alist(thread))


def effect_shape(effect: EffectInfo) -> dict[str, Any]:
    """Return an effect, without its result."""
    return {
        "id": effect.id,
        "name": effect.name,
        "state": effect.state,
        "key": effect.key,
        "claimed_at": time_text(effect.claimed_at),
        "settled_at": time_text(effect.settled_at),
        "node": effect.node,
        "holder": effect.holder,
        "error": effect.error,
        "undo": effect.undo,
    }
