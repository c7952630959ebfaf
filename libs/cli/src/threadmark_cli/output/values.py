"""A stored value as lines of text: a tree, in which long or deep parts are cut and give their size."""

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from itertools import repeat
from typing import Any, NamedTuple

from threadmark.types import ObjectView
from threadmark_cli.output.json_values import visible_fields
from threadmark_cli.output.printable import one_line, text_of
from threadmark_cli.output.styles import Part

Line = list[Part]

_INDENT = "  "
_INLINE = 72
"""Characters of a container that stands in one line."""
_SIMPLE_DEPTH = 3
_INLINE_DEPTH = 6
"""Levels of a value in one line. A deeper one is an ellipsis."""


class Limits(NamedTuple):
    """The limits beyond which a tree is cut."""

    depth: int = 6
    items: int = 12
    characters: int = 400
    empty: bool = False
    """Whether fields of objects that hold nothing appear, too."""


DEFAULT = Limits()
EVERYTHING = Limits(depth=10_000, items=10**9, characters=10**12, empty=True)


def value_lines(label: str, value: Any, limits: Limits = DEFAULT) -> Iterator[Line]:
    """Yield the lines of a value, the first of which begins with its label."""
    heading: Line = [(label, "name"), ": "] if label else []
    yield from _lines(heading, value, limits, 0)


def brief(value: Any, width: int = _INLINE) -> str:
    """A value in one line of about so many characters."""
    text = one_line(_inline(value, width))
    return text if len(text) <= width else text[: width - 1] + "…"


def _lines(heading: Line, value: Any, limits: Limits, depth: int) -> Iterator[Line]:
    indent = _INDENT * depth
    if isinstance(value, str) and "\n" in value:
        yield [indent, *heading, (f"text of {len(value):,} characters", "dim")]
        yield from _text_lines(value, limits, depth + 1)
        return
    children = _children(value, limits)
    if children is None or not children.items:
        yield [indent, *heading, _leaf(value, limits)]
        return
    if children.left_out == 0 and _is_simple(value, _SIMPLE_DEPTH):
        inline = _inline(value, _INLINE)
        if len(inline) < _INLINE:
            yield [indent, *heading, inline]
            return
    if depth >= limits.depth:
        yield [indent, *heading, (f"{children.title} …", "dim")]
        return
    yield [indent, *heading, (children.title, "dim")]
    yield from _child_lines(children, limits, depth + 1)


def _child_lines(children: "_Children", limits: Limits, depth: int) -> Iterator[Line]:
    for place, (label, child) in enumerate(children.items):
        if place == children.gap_after:
            yield [_INDENT * depth, (f"… {children.left_out:,} more", "dim")]
        yield from _lines([(label, "name"), *([": "] if not label.startswith("[") else [" "])], child, limits, depth)


class _Children(NamedTuple):
    """The name of a container, its visible parts, and the number of hidden ones and their place."""

    title: str
    items: Sequence[tuple[str, Any]]
    left_out: int
    gap_after: int


def _children(value: Any, limits: Limits) -> _Children | None:
    if isinstance(value, ObjectView):
        fields = _fields(value, limits)
        return _cut(_class_name(value.name), list(fields.items()), limits)
    if isinstance(value, Mapping):
        return _cut(
            f"{type(value).__name__} of {len(value):,}", [(_key(key), each) for key, each in value.items()], limits
        )
    if isinstance(value, list | tuple | deque | set | frozenset):
        items = list(value)
        title = f"{type(value).__name__} of {len(items):,}"
        return _cut(title, [(f"[{index}]", each) for index, each in enumerate(items)], limits)
    return None


def _cut(title: str, items: Sequence[tuple[str, Any]], limits: Limits) -> _Children:
    """The first few and the last few: in a conversation these matter most."""
    if len(items) <= limits.items:
        return _Children(title, items, 0, len(items))
    first = limits.items // 3
    last = limits.items - first
    return _Children(title, [*items[:first], *items[-last:]], len(items) - limits.items, first)


def _fields(view: ObjectView, limits: Limits) -> dict[str, Any]:
    fields = visible_fields(view)
    if limits.empty:
        return fields
    return {
        name: each for name, each in fields.items() if each is not None and not (_is_sized(each) and len(each) == 0)
    }


def _is_sized(value: Any) -> bool:
    return isinstance(value, str | bytes | Mapping | list | tuple | set | frozenset) and not isinstance(
        value, ObjectView
    )


def _class_name(name: str) -> str:
    """A class by its own name, with the module behind it."""
    module, _, own = name.partition(":")
    return f"{own} ({module})" if own else name


def _key(key: Any) -> str:
    return key if isinstance(key, str) else _number(key) if isinstance(key, int) else text_of(key, repr)


def _is_simple(value: Any, depth: int) -> bool:
    """Whether nothing would be lost if a value stood in one line: no object's module, and nothing nested deeply."""
    if isinstance(value, ObjectView):
        return False
    if isinstance(value, Mapping):
        return depth > 0 and all(_is_simple(each, depth - 1) for each in value.values())
    if isinstance(value, list | tuple | set | frozenset | deque):
        return depth > 0 and all(_is_simple(each, depth - 1) for each in value)
    return True


def _leaf(value: Any, limits: Limits) -> Part:
    if isinstance(value, str):
        if len(value) <= limits.characters:
            return json.dumps(value, ensure_ascii=False)
        return f"{json.dumps(value[: limits.characters], ensure_ascii=False)}… ({len(value):,} characters)"
    if isinstance(value, bytes | bytearray):
        more = "…" if len(value) > _INLINE // 2 else ""
        return (f"{type(value).__name__} of {len(value):,}: {bytes(value[: _INLINE // 2]).hex()}{more}", "number")
    if isinstance(value, ObjectView):
        return (_class_name(value.name), "dim")
    if value is None or isinstance(value, bool | int | float):
        return (_number(value), "number")
    return _inline(value, limits.characters)


def _number(value: float | None) -> str:
    """A number as text; one that is too long for Python to write it in decimal, in hexadecimal."""
    try:
        return str(value)
    except ValueError:
        return hex(value) if isinstance(value, int) else repr(value)


def _text_lines(text: str, limits: Limits, depth: int) -> Iterator[Line]:
    cut = text[: limits.characters * 4]
    lines = cut.split("\n")
    most = limits.items * 2
    for line in lines[:most]:
        yield [_INDENT * depth, ("│ ", "dim"), line.removesuffix("\r")]
    if len(lines) > most or len(cut) < len(text):
        yield [_INDENT * depth, ("│ …", "dim")]


def _inline(value: Any, width: int, depth: int = _INLINE_DEPTH) -> str:
    """A value in one line, which may end with an ellipsis if it is longer than the width."""
    if isinstance(value, ObjectView):
        fields = _fields(value, DEFAULT).items()
        return f"{value.name.rpartition(':')[2]}({_joined((f'{name}=' for name, _ in fields), fields, width, depth)})"
    if isinstance(value, Mapping):
        names = (f"{_inline(key, width, depth - 1)}: " for key in value)
        return f"{{{_joined(names, value.items(), width, depth)}}}"
    if isinstance(value, list | tuple | set | frozenset | deque):
        items = _joined(repeat(""), (("", each) for each in value), width, depth)
        return _BRACKETS.get(type(value), f"{type(value).__name__}({{}})").format(items)
    return _inline_leaf(value, width)


def _inline_leaf(value: Any, width: int) -> str:
    if isinstance(value, str):
        return json.dumps(value[: width + 1], ensure_ascii=False)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return f"<{len(value):,} bytes>"
    if value is None or isinstance(value, bool | int | float):
        return _number(value)
    return f"{type(value).__name__}({text_of(value)})"


_BRACKETS: Mapping[type, str] = {list: "[{}]", tuple: "({})", set: "{{{}}}"}


def _joined(names: Iterable[str], items: Iterable[tuple[Any, Any]], width: int, depth: int) -> str:
    """The parts of a container, as many as there is room for: it may have millions, or be nested a thousand deep."""
    if depth <= 0:
        return "…"
    taken: list[str] = []
    length = 0
    for name, (_, item) in zip(names, items, strict=False):
        if length > width:
            taken.append("…")
            break
        taken.append(f"{name}{_inline(item, width, depth - 1)}")
        length += len(taken[-1]) + 2
    return ", ".join(taken)
