"""Clients that keep a channel as its changes, as engines do, and the judgement of their reads.

Each step writes one text to the channel, and the next checkpoint has no value of it, but for a snapshot now and then. A
checkpoint's texts are its seeds: so many must be in its history, in this order, whatever was pruned. Others may be
among them, if two clients wrote to one checkpoint.
"""

from collections.abc import Iterable
from typing import Any

from replication.actor import Newest, config_of
from simulator.clients import DELTA_CHANNEL, Client, arguments_of, delta_of
from simulator.history import Seen
from simulator.met import Met
from threadmark import Saver, new_id
from threadmark.errors import CheckpointNotFoundError
from threadmark.model import DeltaChannelHistory

LOG = "log"
"""The thread with the channel."""

KINDS = {
    "delta_step": 24,
    "delta_history": 6,
    "prune_log": 14,
    "retention": 1,
    "put": 2,
    "get": 2,
    "lease": 2,
    "delete": 1,
}
"""How often each kind of operation is chosen in a world of deltas."""

EXPECTED = (
    "a checkpoint had its delta channel from writes",
    "a log was pruned",
    "a step of a log followed a pruned checkpoint",
    "a snapshot of a delta channel was put",
)
"""Events of delta channels that must be met in a run of enough seeds."""

_COUNTERS = "counters_since_delta_snapshot"


class DeltaClient(Client):
    """A client whose operations are the steps of a run with a delta channel, too."""

    met: Met

    async def _delta_step(self) -> None:
        """Write a text to the channel of the newest checkpoint, and put the next one."""
        answered, newest = await self._newest(LOG, "")
        if not answered:
            return
        seed = self._chance.getrandbits(32)
        made = Newest(new_id(), (*newest.seeds, seed) if newest else ())
        if newest:
            writing = self._begin("put_writes", LOG, id=newest.id, task=new_id(), seeds=(seed,))
            written = [(DELTA_CHANNEL, delta_of(seed))]
            await self._end(writing, self._saver.aput_writes(config_of(LOG, "", newest.id), written, writing.task))
            if not writing.acknowledged:
                return
            await self._think()
        call = self._begin("put", LOG, id=made.id, parent=newest.id if newest else "", seeds=made.seeds)
        config, checkpoint, metadata, versions = arguments_of(LOG, "", made, call.parent)
        versions[DELTA_CHANNEL] = checkpoint["channel_versions"][DELTA_CHANNEL] = made.id
        metadata[_COUNTERS] = {DELTA_CHANNEL: [1, 1]}
        if not newest or self._chance.random() < 0.15:
            checkpoint["channel_values"][DELTA_CHANNEL] = [delta_of(each) for each in made.seeds]
        await self._end(call, self._saver.aput(config, checkpoint, metadata, versions))
        if call.error.startswith(CheckpointNotFoundError.__name__):
            self.met.note("a step of a log followed a pruned checkpoint")
        if call.acknowledged and newest and DELTA_CHANNEL in checkpoint["channel_values"]:
            self.met.note("a snapshot of a delta channel was put")

    async def _delta_history(self) -> None:
        answered, newest = await self._newest(LOG, "")
        if answered and newest:
            call = self._begin("history", LOG, id=newest.id, seeds=newest.seeds)
            asked = self._saver.aget_delta_channel_history(
                config=config_of(LOG, "", newest.id), channels=[DELTA_CHANNEL]
            )
            await self._end(call, asked)
            call.value = None  # it may have been pruned in between, so only the end is judged

    async def _prune_log(self) -> None:
        keeps = self._chance.randrange(1, 4)
        call = self._begin("prune", LOG, keeps=keeps)
        await self._end(call, self._saver.aprune([LOG], keep_last=keeps))
        if call.acknowledged:
            self.met.note("a log was pruned")


def _lacking(seeds: Iterable[int], history: DeltaChannelHistory) -> list[int]:
    """Return those of a checkpoint's seeds whose texts are not in its history, or not in their order."""
    seed: Any = history.get("seed", [])
    texts = iter([*(seed or []), *(value for _, _, value in history["writes"])])
    return [each for each in seeds if delta_of(each) not in texts]


def objections(saver: Saver, there: Iterable[Seen], met: Met) -> Iterable[str]:
    """Judge the history of each checkpoint that is left at the end."""
    for each in there:
        config = config_of(LOG, "", each.id)
        item = saver.get_tuple(config)
        if item is None or DELTA_CHANNEL in item.checkpoint["channel_values"]:
            continue  # its history is that of its parent
        history = saver.get_delta_channel_history(config=config, channels=[DELTA_CHANNEL])[DELTA_CHANNEL]
        if history["writes"]:
            met.note("a checkpoint had its delta channel from writes")
        if lacks := _lacking(each.seeds, history):
            yield f"{each.id} of the log has not the texts {lacks} in its history at the end"
