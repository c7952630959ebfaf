"""Values as typed JSON, which the page shows: no deeper and no longer than a budget allows, the rest on demand.

A node is a dictionary whose `t` is its type; the others of its keys depend on that. A cut node gives the full size
(`n`), and every child has the step of a path (`Saver.extract`) that leads to it, if one does.
"""

import datetime
import decimal
import fractions
import ipaddress
import json
import pathlib
import re
import time
import uuid
import zoneinfo
from array import array
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

from threadmark.serde.object_view import SECRET_FIELD
from threadmark.types import ObjectView
from threadmark_cli.output.printable import text_of

Node = dict[str, Any]

_ATTRIBUTE = re.compile(r"[^\W\d]\w*")
_PREVIEW_BYTES = 64
_ITEMS_INSIDE = 20
_CHARACTERS_INSIDE = 2_000
_CHARACTERS_OF_OTHERS = 1000


class Cut(NamedTuple):
    """The part of one value that is sent at once."""

    depth: int = 2
    """How many levels of containers are opened."""
    items: int = 50
    """The most items of one container."""
    characters: int = 2_000
    """The most characters of one text."""

    def inside(self) -> "Cut":
        """Return the cut for the values in this one: the usual size, whatever part of this one was requested."""
        return Cut(self.depth - 1, _ITEMS_INSIDE, _CHARACTERS_INSIDE)


class Budget:
    """How much one answer may still hold, whatever it is about: a bound on its size and on the work for it."""

    def __init__(self, nodes: int = 5_000, characters: int = 400_000) -> None:
        self.nodes = nodes
        self.characters = characters

    def take(self, count: int) -> int:
        """Take so many characters, or as many as there are. Returns how many."""
        taken = min(count, self.characters)
        self.characters -= taken
        return taken

    def share(self, parts: int) -> "Budget":
        """Return the budget of one of so many parts, so that none starves the others."""
        return Budget(max(1, self.nodes // parts), self.characters // parts)


WHOLE = Cut()


class Window(NamedTuple):
    """Which items, or which characters, of the outermost value are wanted."""

    offset: int = 0
    limit: int | None = None
    """At most as many as the cut allows."""


ALL = Window()


def node_of(value: Any, budget: Budget, cut: Cut = WHOLE, window: Window = ALL, total: int | None = None) -> Node:
    """Return a value as a node. With `total`, the value is the window's part of a sequence of so many items."""
    budget.nodes -= 1
    kind = type(value)
    if kind in _SCALARS:
        return _SCALARS[kind](value)
    if kind is str:
        return _text(value, budget, cut, window)
    if kind in _SEQUENCES:
        count = len(value) if total is None else total
        items = value if total is not None else islice(value, window.offset, None)
        return _items(_SEQUENCES[kind], count, items, budget, cut, window)
    if kind in _MAPPINGS:
        entries = ([key, item, key_step(key)] for key, item in value.items())
        return _container("dict", _MAPPINGS[kind], len(value), entries, budget, cut, window)
    return _object(value, kind, budget, cut, window)


def _object(value: Any, kind: type, budget: Budget, cut: Cut, window: Window) -> Node:
    if kind is not ObjectView and kind not in _NAMESPACES:
        return _other(value, kind)
    name, fields = value if kind is ObjectView else (_NAMESPACES[kind], vars(value))
    entries = ([str(field), _seen(field, item), _field_step(field)] for field, item in fields.items())
    return _container("object", name, len(fields), entries, budget, cut, window)


class _Secret:
    """Stands for a value that must not be seen over a shoulder."""


def _seen(field: str, value: Any) -> Any:
    return _Secret() if field == SECRET_FIELD else value


def key_step(key: Any) -> str | None:
    """Return the step of a path that leads to a dictionary's key, None if none does."""
    if type(key) is not str:
        return None
    return _field_step(key) or f"[{json.dumps(key)}]"


def channel_path(channel: str) -> str:
    """Return the path of a channel's whole value."""
    return channel if _CHANNEL.fullmatch(channel) else f"[{json.dumps(channel)}]"


_CHANNEL = re.compile(r'[^.\[\]"\s][^.\[\]"]*')


def _field_step(name: Any) -> str | None:
    """Return the step of a path that leads to an object's field. A namespace may have fields that are no text."""
    if type(name) is not str:
        return None
    return f".{name}" if _ATTRIBUTE.fullmatch(name) and not name.startswith("__") else None


def _text(value: str, budget: Budget, cut: Cut, window: Window) -> Node:
    count = cut.characters if window.limit is None else min(window.limit, cut.characters)
    visible = value[window.offset : window.offset + count]
    node: Node = {"t": "str", "v": visible[: budget.take(len(visible))], "n": len(value)}
    if window.offset:
        node["offset"] = window.offset
    return node


def _items(kind: str, count: int, items: Iterable[Any], budget: Budget, cut: Cut, window: Window) -> Node:
    node: Node = {"t": kind, "n": count}
    if cut.depth > 0:
        node["offset"] = window.offset
        inner = cut.inside()
        node["items"] = [node_of(item, budget, inner) for item in _affordable(items, budget, cut, window)]
    return node


def _container(
    kind: str, name: str | None, count: int, entries: Iterable[list[Any]], budget: Budget, cut: Cut, window: Window
) -> Node:
    node: Node = {"t": kind, "n": count}
    if name is not None:
        node["name"] = name
    if cut.depth > 0:
        node["offset"] = window.offset
        inner = cut.inside()
        node["entries"] = [
            [
                key if kind == "object" else node_of(key, budget, cut._replace(depth=1, items=8)),
                node_of(value, budget, inner),
                step,
            ]
            for key, value, step in _affordable(islice(entries, window.offset, None), budget, cut, window)
        ]
    return node


def _affordable(items: Iterable[Any], budget: Budget, cut: Cut, window: Window) -> Iterable[Any]:
    """The first items, as many as the window has, up to the end of the budget."""
    limit = cut.items if window.limit is None else min(window.limit, cut.items)
    for item in islice(items, limit):
        if budget.nodes <= 0 or budget.characters <= 0:
            return
        yield item


def _int(value: int) -> Node:
    try:
        text = int.__repr__(value)
    except ValueError:  # too many digits for Python to write in decimals at once
        text = hex(value)
    return {"t": "int", "v": text}


def _bytes(value: bytes | bytearray) -> Node:
    node: Node = {"t": "bytes", "n": len(value), "v": value[:_PREVIEW_BYTES].hex()}
    if type(value) is bytearray:
        node["name"] = "bytearray"
    return node


_SCALARS: Mapping[type, Callable[[Any], Node]] = {
    type(None): lambda _: {"t": "none"},
    bool: lambda value: {"t": "bool", "v": value},
    int: _int,
    float: lambda value: {"t": "float", "v": float.__repr__(value)},
    bytes: _bytes,
    bytearray: _bytes,
}

_SEQUENCES: Mapping[type, str] = {
    list: "list",
    tuple: "tuple",
    set: "set",
    frozenset: "frozenset",
    deque: "deque",
}

_MAPPINGS: Mapping[type, str | None] = {
    dict: None,
    OrderedDict: "OrderedDict",
    defaultdict: "defaultdict",
    Counter: "Counter",
    MappingProxyType: "mappingproxy",
}

_NAMESPACES: Mapping[type, str] = {SimpleNamespace: "types:SimpleNamespace", ChainMap: "collections:ChainMap"}


def _iso(value: Any) -> str:
    return str(value.isoformat())


_TEXTS: Mapping[type, Callable[[Any], str]] = {
    datetime.datetime: _iso,
    datetime.date: _iso,
    datetime.time: _iso,
    **dict.fromkeys(
        (
            datetime.timedelta,
            datetime.timezone,
            decimal.Decimal,
            fractions.Fraction,
            uuid.UUID,
            complex,
            zoneinfo.ZoneInfo,
            pathlib.PurePosixPath,
            pathlib.PureWindowsPath,
            type(pathlib.Path()),
            ipaddress.IPv4Address,
            ipaddress.IPv4Interface,
            ipaddress.IPv4Network,
            ipaddress.IPv6Address,
            ipaddress.IPv6Interface,
            ipaddress.IPv6Network,
        ),
        str,
    ),
    **dict.fromkeys(
        (re.Pattern, range, slice, array, time.struct_time, type(Ellipsis), type(NotImplemented)),
        repr,
    ),
}
"""How the other kinds that need no class are written. Nothing else is asked for its text: that may run anything."""


def _other(value: Any, kind: type) -> Node:
    if kind is _Secret:
        return {"t": "other", "name": "secret", "v": "**********"}
    text = text_of(value, _TEXTS[kind]) if kind in _TEXTS else ""
    return {"t": "other", "name": kind.__name__, "v": text[:_CHARACTERS_OF_OTHERS]}


def unread(why: str, message: str) -> Node:
    """Return a node that stands for a value that could not be read."""
    return {"t": "unread", "name": why, "v": message[:_CHARACTERS_OF_OTHERS]}


def changes_of(parts: Sequence[tuple[str, Any]] | None, budget: Budget, cut: Cut = WHOLE, window: Window = ALL) -> Node:
    """Return a node for a channel that is kept as changes: with its parts, or without if they were not read yet."""
    if parts is None:
        return {"t": "changes", "name": KEPT_AS_CHANGES, "n": None}
    entries = ([label, value, None] for label, value in parts)
    node: Node = {"t": "changes", "name": KEPT_AS_CHANGES, "n": len(parts), "offset": window.offset}
    inner = cut.inside()
    node["entries"] = [
        [label, node_of(value, budget, inner), step]
        for label, value, step in _affordable(islice(entries, window.offset, None), budget, cut, window)
    ]
    return node


KEPT_AS_CHANGES = "kept as changes"


def nodes_of(values: Mapping[str, Any], budget: Budget, cut: Cut) -> Sequence[tuple[str, Node]]:
    """Return named values as nodes. Each gets an equal share of the rest of the budget."""
    visible: list[tuple[str, Node]] = []
    left = len(values)
    for name, value in values.items():
        share = budget.share(left)
        before = share.nodes, share.characters
        visible.append((name, node_of(value, share, cut)))
        budget.nodes -= before[0] - share.nodes
        budget.characters -= before[1] - share.characters
        left -= 1
    return visible
