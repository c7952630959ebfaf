"""A stored value as lines of text: a tree, in which what is long or deep is cut and says how much there is."""

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any, NamedTuple

from threadmark import Shown
from threadmark_cli.output.json_values import visible_fields
from threadmark_cli.output.printable import one_line
from threadmark_cli.output.styles import Part

Line = list[Part]

_INDENT = "  "
_INLINE = 72
"""Characters of a container that stands in one line."""


class Limits(NamedTuple):
    """Beyond what a tree is cut."""

    depth: int = 6
    items: int = 12
    characters: int = 400
    empty: bool = False
    """Whether fields of objects that hold nothing are shown, too."""


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
    inline = _inline(value, _INLINE)
    if len(inline) < _INLINE and children.left_out == 0 and not _has_objects(value):
        yield [indent, *heading, inline]
        return
    yield [indent, *heading, (children.title, "dim")]
    if depth >= limits.depth:
        return
    yield from _child_lines(children, limits, depth + 1)


def _child_lines(children: "_Children", limits: Limits, depth: int) -> Iterator[Line]:
    before_gap = children.gap_after
    for place, (label, child) in enumerate(children.items):
        if place == before_gap and children.left_out:
            yield [_INDENT * depth, (f"… {children.left_out:,} more", "dim")]
        yield from _lines([(label, "name"), *([": "] if not label.startswith("[") else [" "])], child, limits, depth)
    if before_gap >= len(children.items) and children.left_out:
        yield [_INDENT * depth, (f"… {children.left_out:,} more", "dim")]


class _Children(NamedTuple):
    """What a container is called, those of its parts that are shown, and how many more there are behind which."""

    title: str
    items: Sequence[tuple[str, Any]]
    left_out: int
    gap_after: int


def _children(value: Any, limits: Limits) -> _Children | None:
    if isinstance(value, Shown):
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
    """The first few and the last few: of a conversation these are what one looks for."""
    if len(items) <= limits.items:
        return _Children(title, items, 0, len(items))
    first = limits.items // 3
    last = limits.items - first
    return _Children(title, [*items[:first], *items[-last:]], len(items) - limits.items, first)


def _fields(shown: Shown, limits: Limits) -> dict[str, Any]:
    fields = visible_fields(shown)
    if limits.empty:
        return fields
    return {
        name: each for name, each in fields.items() if each is not None and not (_is_sized(each) and len(each) == 0)
    }


def _is_sized(value: Any) -> bool:
    return isinstance(value, str | bytes | Mapping | list | tuple | set | frozenset) and not isinstance(value, Shown)


def _class_name(name: str) -> str:
    """A class by its own name, with the module behind it."""
    module, _, own = name.partition(":")
    return f"{own} ({module})" if own else name


def _key(key: Any) -> str:
    return key if isinstance(key, str) else repr(key)


def _has_objects(value: Any) -> bool:
    """Whether an object stands in a value, whose name would be lost in a line."""
    if isinstance(value, Shown):
        return True
    if isinstance(value, Mapping):
        return any(map(_has_objects, value.values()))
    return isinstance(value, list | tuple | set | frozenset) and any(map(_has_objects, value))


def _leaf(value: Any, limits: Limits) -> Part:
    if isinstance(value, str):
        if len(value) <= limits.characters:
            return json.dumps(value, ensure_ascii=False)
        return f"{json.dumps(value[: limits.characters], ensure_ascii=False)}… ({len(value):,} characters)"
    if isinstance(value, bytes | bytearray):
        more = "…" if len(value) > _INLINE // 2 else ""
        return (f"{type(value).__name__} of {len(value):,}: {bytes(value[: _INLINE // 2]).hex()}{more}", "number")
    if isinstance(value, Shown):
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


def _inline(value: Any, width: int) -> str:
    """A value in one line, which may end with an ellipsis where it is longer than the width."""
    if isinstance(value, Shown):
        fields = _joined((f"{name}={_inline(each, width)}" for name, each in _fields(value, DEFAULT).items()), width)
        return f"{value.name.rpartition(':')[2]}({fields})"
    if isinstance(value, Mapping):
        items = _joined((f"{_inline(key, width)}: {_inline(each, width)}" for key, each in value.items()), width)
        return f"{{{items}}}"
    if isinstance(value, list | tuple | set | frozenset | deque):
        items = _joined((_inline(each, width) for each in value), width)
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
    return f"{type(value).__name__}({value})"


_BRACKETS: Mapping[type, str] = {list: "[{}]", tuple: "({})", set: "{{{}}}"}


def _joined(items: Iterator[str], width: int) -> str:
    """As many as there is room for: a value may have millions of parts."""
    taken: list[str] = []
    length = 0
    for item in items:
        if length > width:
            taken.append("…")
            break
        taken.append(item)
        length += len(item) + 2
    return ", ".join(taken)
