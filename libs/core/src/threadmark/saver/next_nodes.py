"""The nodes that run after a checkpoint, by what LangGraph stores in it, without the graph.

A channel has a node run if its version is not the one that the node has seen. A checkpoint holds the names of the nodes
that have run, with the channels that made them run, and most channels that make a node run are named after it.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from threadmark.errors import LocatedError, located
from threadmark.format.header import HEADER_TAG, UNFINISHED_TAG, plain_fields
from threadmark.format.stored import Stored
from threadmark.ids import Version
from threadmark.program import Program
from threadmark.saver.context import SaverContext
from threadmark.saver.decoding import decode_channel, decode_items
from threadmark.saver.loading import LoadedCheckpoint, load_channels
from threadmark.saver.proving import channel_location, header_location
from threadmark.saver.storing import Draft
from threadmark.serde.steps import Name

_BRANCH = "branch:to:"
"""Before a node's name, the channel that has it run."""
_JOIN = "join:"
"""Begins the channel that has a node run after several others, as "join:one+other:node"."""
_SENDS = "__pregel_tasks"
_START = "__start__"
"""The channel of a graph's input, and the node that takes it."""
_BUMPS = "__snapshot_bumps__"
"""Not a node: it has the versions that a snapshot gave to a channel, by the node that counts as having seen them."""
_NO_NODES = {"__input__", "__interrupt__", _BUMPS}
"""These count as having seen channels, too: the second at which versions a person was last asked."""


def header_tag(draft: Draft) -> str:
    """Return the tag of a checkpoint's header, which says whether nodes are still to run."""

    def is_ready(channel: str) -> bool:
        return channel in draft.values and _is_ready(channel, draft.values[channel])

    found = next(_triggers(draft.fields, draft.versions, is_ready), None)
    return HEADER_TAG if found is None else UNFINISHED_TAG


def next_nodes(context: SaverContext, thread_ids: Sequence[str]) -> Program[dict[str, list[str] | LocatedError]]:
    """Return the nodes that run after the newest checkpoints of some threads, or the error of one that is damaged."""
    found: dict[str, list[str] | LocatedError] = {}
    while len(found) < len(thread_ids):
        loaded = yield from load_channels(context, thread_ids[len(found) :], TRIGGERS)
        for thread_id, one in loaded.items():
            found[thread_id] = one if isinstance(one, LocatedError) else _nodes_or_error(context, one)
    return found


class _AllTriggers:
    """The channels whose values may have to be looked at."""

    def __contains__(self, channel: object) -> bool:
        return isinstance(channel, str) and (channel == _SENDS or channel.startswith((_BRANCH, _JOIN)))


TRIGGERS = _AllTriggers()


def _nodes_or_error(context: SaverContext, loaded: LoadedCheckpoint | None) -> list[str] | LocatedError:
    try:
        return [] if loaded is None else _nodes(context, loaded)
    except LocatedError as error:
        return error


def _nodes(context: SaverContext, loaded: LoadedCheckpoint) -> list[str]:
    """Return the nodes as LangGraph orders them: first those that packets are sent to."""
    header, data = loaded.header, loaded.data

    def is_ready(channel: str) -> bool:
        value = header.values.get(channel)
        if value is None or channel not in TRIGGERS:
            return value is not None
        return _is_ready(channel, decode_channel(context, loaded.outline, channel, value, data))

    with located(header_location(loaded.outline)):
        fields = plain_fields(header)
    found = list(_triggers(fields, header.versions, is_ready))
    packets = header.values.get(_SENDS) if (_SENDS, "") in found else None
    sent = [] if packets is None else _sent_to(context, loaded, packets)
    return list(dict.fromkeys([*sent, *sorted(node for channel, node in found if channel != _SENDS)]))


def _sent_to(context: SaverContext, loaded: LoadedCheckpoint, value: Stored) -> list[str]:
    """Return the nodes of packets, of which nothing else is decoded."""
    items = decode_items(context, loaded.outline, _SENDS, value, loaded.data)
    if items is None:
        return []
    with located(channel_location(loaded.outline, _SENDS)):
        names = [items.part(place, (Name("node"),)) for place in range(len(items))]
    return [name for name in names if isinstance(name, str)]


def _triggers(
    fields: Mapping[str, Any], versions: Mapping[str, Version], is_ready: Callable[[str], bool]
) -> Iterator[tuple[str, str]]:
    """Yield the channels that have a node run, each with the node's name. That of packets has "", they say to whom.

    `is_ready` says of a channel whether its value lets nodes run, for a checkpoint that does not say so itself.
    """
    seen, updated = fields.get("versions_seen"), fields.get("updated_channels")
    if not isinstance(seen, dict):
        return
    channels: Collection[Any] = updated if isinstance(updated, list) and updated else versions
    says_so = channels is updated
    unnamed: set[str] = set()
    for channel in [each for each in channels if isinstance(each, str)]:  # an engine may store anything
        node = _named_in(channel)  # most often the first one is named after a node
        if node is None:
            unnamed.add(channel)
        elif _is_newer(channel, versions, seen.get(node)) and is_ready(channel):
            yield channel, node
    nodes = {node: each for node, each in seen.items() if isinstance(each, dict) and node not in _NO_NODES}
    for node, by_channel in nodes.items():
        if not unnamed.isdisjoint(by_channel):
            for channel in unnamed & by_channel.keys() - _never_read(seen, node):
                if _is_newer(channel, versions, by_channel) and (says_so or is_ready(channel)):
                    yield channel, str(node)
    if _START in unnamed and is_ready(_START) and not any(_START in by_channel for by_channel in nodes.values()):
        yield _START, _START


def _never_read(seen: Mapping[Any, Any], node: object) -> set[str]:
    """Return the channels that only a snapshot has marked as seen by a node: it does so for every node there is."""
    bumps = seen.get(_BUMPS)
    if not isinstance(bumps, dict):
        return set()
    read = {str(key) for key in bumps}
    marked = (each[len(f"{node}|") :] for each in read if each.startswith(f"{node}|"))
    return {channel for channel in marked if f"{node}:{channel}" not in read}


def _named_in(channel: str) -> str | None:
    """Return the node that a channel is named after, or "" for packets."""
    if channel.startswith(_BRANCH):
        return channel[len(_BRANCH) :]
    if channel.startswith(_JOIN):
        return channel.rpartition(":")[2]
    return "" if channel == _SENDS else None


def _is_newer(channel: str, versions: Mapping[str, Version], by_channel: object) -> bool:
    """Return whether a channel has another version than a node has seen."""
    version = versions.get(channel)
    if version is None or not isinstance(by_channel, dict):
        return version is not None
    seen = by_channel.get(channel)
    return type(seen) is not type(version) or seen != version  # an engine may store anything, also in the place of one


def _is_ready(channel: str, value: object) -> bool:
    """Return whether the value of a channel lets its nodes run."""
    if channel == _SENDS:
        return isinstance(value, Sequence) and len(value) > 0
    if channel not in TRIGGERS:
        return True
    if isinstance(value, tuple) and len(value) == _WITH_FINISHED:  # the node was added with defer=True
        value, is_finished = value
        if is_finished is not True:
            return False
    if not channel.startswith(_JOIN):
        return True
    awaited = channel[len(_JOIN) :].rpartition(":")[0]
    return isinstance(value, set | frozenset) and len("+".join(map(str, value))) == len(awaited)


_WITH_FINISHED = 2
"""The length of the value of a channel that waits for the end of all other nodes: its own, and whether that came."""
