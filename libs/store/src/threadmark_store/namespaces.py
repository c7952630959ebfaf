"""Namespaces: tuples of labels for callers, texts in rows. A label has no dot, so a dot joins them.

`/` is the character after the dot, so the namespaces below "a.b" are the texts from "a.b." to "a.b/" in any order that
compares code points.
"""

from collections.abc import Iterable

from threadmark_store.shapes import Labels, Match

_DOT, _AFTER_DOT = ".", "/"


def joined(labels: Labels) -> str:
    """Return the text of a namespace."""
    return _DOT.join(labels)


def labels_of(namespace: str) -> Labels:
    """Return the labels of a namespace's text."""
    return tuple(namespace.split(_DOT)) if namespace else ()


def bounds_below(namespace: str) -> tuple[str, str]:
    """Return the least text below a namespace, and the least that is above all of them."""
    return namespace + _DOT, namespace + _AFTER_DOT


def is_within(namespace: str, prefix: str) -> bool:
    """Return whether a namespace is the prefix or below it. Every one is within an empty prefix."""
    return not prefix or namespace == prefix or namespace.startswith(prefix + _DOT)


def literal_prefix(matches: Iterable[Match]) -> str:
    """Return the longest text that every namespace which meets the conditions is within."""
    longest: Labels = ()
    for match in matches:
        if match.kind == "prefix":
            path = match.path[: match.path.index("*")] if "*" in match.path else match.path
            longest = max(longest, path, key=len)
    return joined(longest)


def selected(namespaces: Iterable[str], matches: Iterable[Match], max_depth: int | None) -> list[Labels]:
    """Return the namespaces that meet all conditions, cut to a depth, in order and each once."""
    matches = tuple(matches)
    found = {labels for labels in map(labels_of, namespaces) if all(_meets(labels, match) for match in matches)}
    return sorted(found if max_depth is None else {labels[:max_depth] for labels in found})


def _meets(labels: Labels, match: Match) -> bool:
    if len(labels) < len(match.path):
        return False
    part = labels[: len(match.path)] if match.kind == "prefix" else labels[len(labels) - len(match.path) :]
    return all(asked in ("*", label) for asked, label in zip(match.path, part, strict=True))
