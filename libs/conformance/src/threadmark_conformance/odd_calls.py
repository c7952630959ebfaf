"""Calls of every method with odd arguments; `odd_outcomes` checks their outcomes."""

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

from threadmark_conformance.engine import at, checkpoint, early_id
from threadmark_conformance.odd_values import ODD_VALUES, hashable

Path = tuple[Any, ...]


class OddCall(NamedTuple):
    """A call with one or several arguments replaced by odd values, or parts of them."""

    method: str
    changes: Sequence[tuple[Path, bool, str]]
    """For each change the way to it, whether it replaces the name at that place, and the odd value."""

    def arguments(self, thread: str) -> dict[str, Any] | None:
        """Return new arguments, or None if an odd value cannot be put there."""
        made: Any = valid_arguments(thread)[self.method]
        for path, is_key, odd in self.changes:
            value = ODD_VALUES[odd]()
            if is_key and not hashable(value):
                return None
            made = _replaced(made, path, value, is_key=is_key)
        arguments: dict[str, Any] = made
        return arguments

    def __str__(self) -> str:
        changes = (f"{'the name of ' * is_key}{'.'.join(map(str, path))} = {odd}" for path, is_key, odd in self.changes)
        return f"{self.method}: {', '.join(changes)}"


def odd_calls(count: int, seed: int = 0) -> list[OddCall]:
    """Return this many calls: every part of every argument in turn, with odd values in an order that the seed decides.

    One call in five has two odd arguments.
    """
    chance = random.Random(seed)
    singles = list(islice(_singles(chance), count - count // 5))
    pairs: list[OddCall] = []
    while len(pairs) < count // 5:
        one, other = chance.choice(singles), chance.choice(singles)
        if one.method == other.method and one.changes[0][0] != other.changes[0][0]:
            pairs.append(OddCall(one.method, [*one.changes, *other.changes]))
    return singles + pairs


def all_odd_calls() -> list[OddCall]:
    """Return calls with every odd value in every part of every argument."""
    return list(_singles(random.Random(0)))


def valid_arguments(thread: str) -> dict[str, dict[str, Any]]:
    """Return ordinary arguments for each method."""
    config = {**at(thread, "", early_id(2)), "metadata": {"user": "u"}}
    config["configurable"] |= {"checkpoint_map": {"": "x"}, "tenant": "t"}
    made = checkpoint(
        {"a": [1], "b": "y" * 200},
        {"a": 2, "b": 3},
        checkpoint_id=early_id(3),
        versions_seen={"node": {"a": 1}},
        updated_channels=["a"],
        extra={"b": 1},
    )
    return {
        "put": {
            "config": config,
            "checkpoint": made,
            "metadata": {"step": 1, "parents": {"": "x"}},
            "new_versions": {"a": 2},
            "expect_newest": None,
        },
        "put_writes": {
            "config": config,
            "writes": [("a", 1), ("b", [1])],
            "task_id": "another",
            "task_path": "~path",
        },
        "get": {"config": config},
        "get_tuple": {"config": config},
        "get_checkpoint_ref": {"config": config},
        "list": {"config": at(thread), "filter": {"step": 1}, "before": config, "limit": 3},
        "extract": {"thread": config, "path": "a[0]"},
        "extract_items": {"thread": at(thread), "limit": 3, "before": 1, "channel": "m"},
        "history": {"thread": config, "ns": "", "limit": 3, "cursor": None},
        "tree": {"thread": thread},
        "diff": {"a": at(thread, "", early_id(1)), "b": config, "path": "a", "limit": 3},
        "blame": {"thread": config, "path": "a[0]"},
        "search": {"thread": thread, "text": "x", "ns": "", "limit": 3, "cursor": None},
        "fork": {"config": config, "values": {"a": [1], "b": None}, "as_thread": None},
        "restore": {"config": at(thread, "", early_id(1))},
        "get_delta_channel_history": {"config": config, "channels": ["a"]},
        "delete_thread": {"thread_id": thread},
        "delete_checkpoint": {"config": config},
        "delete_for_runs": {"run_ids": ["r"]},
        "copy_thread": {"source_thread_id": thread, "target_thread_id": "copy"},
        "prune": {
            "thread_ids": [thread],
            "strategy": "keep_latest",
            "keep_last": 1,
            "older_than": None,
            "missing_ok": True,
            "dry_run": False,
        },
        "apply_retention": {
            "keep_last": 1,
            "older_than": timedelta(0),
            "idle_for": timedelta(days=1),
            "max_bytes": 1_000_000,
            "owner": None,
            "metadata": None,
            "dry_run": False,
        },
        "verify": {"thread_id": thread, "decode": False, "repair": False},
        "stats": {"thread_id": thread},
        "get_next_version": {"current": 1},
        **_valid_for_threads(thread),
    }


def _valid_for_threads(thread: str) -> dict[str, dict[str, Any]]:
    about: dict[str, Any] = {"title": "Straße", "metadata": {"k": "v"}, "owner": "ada", "expires_at": None}
    scope: dict[str, Any] = {
        "owner": None,
        "status": "idle",
        "metadata": None,
        "text": None,
        "since": datetime(2020, 1, 1, tzinfo=UTC),
        "until": None,
    }
    return {
        "list_threads": {
            **scope,
            "sort": "-updated",
            "limit": 3,
            "cursor": None,
            "offset": 0,
            "extract": {"last": "a[1:]"},
        },
        "count_threads": scope,
        "unfinished": {"idle_for": 1, "limit": 3, "cursor": None},
        "get_thread": {"thread_id": thread},
        "create_thread": {"thread_id": "created", **about},
        "update_thread": {"thread_id": thread, **about},
        "rename_thread": {"thread_id": thread, "new_thread_id": "renamed"},
    }


def _singles(chance: random.Random) -> Iterator[OddCall]:
    """Yield calls with one odd argument: each argument once, then each with another value, and so on."""
    valid = valid_arguments("thread").items()
    locations = [(method, path, key) for method, arguments in valid for path, key in _paths(arguments)]
    chance.shuffle(locations)
    orders = [chance.sample(list(ODD_VALUES), len(ODD_VALUES)) for _ in locations]
    for turn in range(len(ODD_VALUES)):
        for (method, path, key), order in zip(locations, orders, strict=True):
            yield OddCall(method, [(path, key, order[turn])])


def _paths(value: Any, path: Path = ()) -> Iterator[tuple[Path, bool]]:
    """Return the places in the arguments for odd values, and whether each is a name."""
    if path:
        yield path, False
        if len(path) > 1 and isinstance(path[-1], str):
            yield path, True
    steps: Iterator[Any] = iter(value.items() if isinstance(value, dict) else ())
    if isinstance(value, (list, tuple)):
        steps = enumerate(value)
    for step, inner in steps:
        yield from _paths(inner, (*path, step))


def _replaced(value: Any, path: Path, odd: Any, *, is_key: bool) -> Any:
    """Return a copy of the value with an odd value at the end of the path, or the value if there is no such path."""
    if not path:
        return odd
    step, *rest = path
    if isinstance(value, dict) and step in value:
        if is_key and not rest:
            return {odd if key == step else key: inner for key, inner in value.items()}
        return {
            key: _replaced(inner, tuple(rest), odd, is_key=is_key) if key == step else inner
            for key, inner in value.items()
        }
    if isinstance(value, (list, tuple)) and isinstance(step, int) and step < len(value):
        items = list(value)
        items[step] = _replaced(items[step], tuple(rest), odd, is_key=is_key)
        return type(value)(items)
    return value
