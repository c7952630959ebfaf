"""The allowed outcomes of a call with odd arguments.

Either it is refused with a Threadmark error and leaves nothing behind, or its values and everything else can be read. A
database answers exactly as the saver in memory does.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from threadmark.errors import ThreadmarkError, short_repr
from threadmark.saver import Saver
from threadmark.serde import Serde
from threadmark.travel.model import Blame, HistoryEntry, HistoryPage, Tree
from threadmark.types import PruneReport, RetentionReport, Stats, ThreadInfo, ThreadPage, VerifyReport
from threadmark_conformance.engine import at, checkpoint, early_id, listed
from threadmark_conformance.odd_calls import OddCall

_WORTH_A_LOOK = 25
"""After this many calls that must not change anything, a check follows that they did not."""

_READS = {
    "get",
    "get_tuple",
    "get_checkpoint_ref",
    "list",
    "get_delta_channel_history",
    "extract",
    "extract_items",
    "history",
    "tree",
    "diff",
    "blame",
    "search",
    "verify",
    "stats",
    "get_next_version",
    "list_threads",
    "count_threads",
    "get_thread",
}


_MAKES_IDS = {"fork", "restore"}
"""Methods whose data has new ids and times, so that backends can only agree on its amount."""


async def check_odd_calls(
    saver: Saver, reader: Saver, in_memory: Saver, calls: Sequence[OddCall]
) -> dict[tuple[str, str], int]:
    """Make the calls on both savers. Returns how many were refused and how many were done, by method."""
    tested, reference = _Side(saver, reader), _Side(in_memory, in_memory)
    counts: dict[tuple[str, str], int] = {}
    wrong: list[str] = []
    for number, call in enumerate(calls):
        if call.arguments("") is None:
            continue
        try:
            if tested.changed or reference.changed:
                for side in (tested, reference):
                    await side.begin(f"thread {number}")
            expected = await reference.outcome(call)
            await reference.look()
            if reference.changed:  # data of a refused call must not count as data of this one
                await tested.look()
            outcome = await tested.outcome(call)
        except (_WrongError, ThreadmarkError) as problem:
            wrong.append(f"{call}: {problem}")
            tested.changed = True
            continue
        if outcome != expected:
            wrong.append(f"{call}: {outcome!r}, but in memory {expected!r}")
        ending = call.method, "refused" if isinstance(outcome, str) else "done"
        counts[ending] = counts.get(ending, 0) + 1
    await tested.look()
    assert not wrong, f"{len(wrong)} of {len(calls)} odd calls: " + "\n".join(wrong)
    return counts


class _WrongError(Exception):
    """An outcome that is not allowed."""


class _Side:
    """A saver, a second one that checks the work of the first, and the stored data."""

    def __init__(self, saver: Saver, reader: Saver) -> None:
        self._saver = saver
        self._reader = reader
        self._thread = ""
        self._state: object = None
        self._unseen: list[OddCall] = []
        self.changed = True

    async def begin(self, thread: str) -> None:
        """Remove everything, and make a small history in a thread with a new name."""
        self._unseen.clear()
        for found in (await self._reader.alist_threads(limit=100)).threads:
            await self._saver.adelete_thread(found.id)
        self._thread = thread
        for number in (1, 2):
            config = at(thread, "", early_id(number - 1) if number > 1 else None)
            made = checkpoint({"a": "x" * 200, "b": number}, {"a": 1, "b": number}, checkpoint_id=early_id(number))
            await self._saver.aput(config, made, {"step": number, "run_id": "r"}, {"a": 1, "b": number})
            await self._saver.aput_writes(at(thread, "", early_id(number)), [("a", number)], "task", "path")
        self._state = await self._whole()
        self.changed = False

    async def outcome(self, call: OddCall) -> Any:
        """Return the name of the error, or the result and the data stored after it."""
        arguments = call.arguments(self._thread)
        assert arguments is not None
        try:
            returned = await _made(self._saver, call.method, arguments)
        except ThreadmarkError as error:
            if not str(error):
                raise _WrongError("its error says nothing") from error
            await self._unchanged(call)
            return type(error).__name__
        except Exception as error:
            raise _WrongError(f"{type(error).__name__}: {str(error)[:200]}") from error
        if call.method in _READS:
            await self._unchanged(call)
            return [_outcome_repr(call.method, returned)]
        state = await self._whole()
        self.changed = state != self._state
        if call.method in ("put", "put_writes"):
            try:
                await self._reads_back(call, returned)
            except (AttributeError, TypeError, ValueError, LookupError) as error:
                raise _WrongError(f"it was accepted, and cannot be: {error}") from error
        return state[1] if call.method in _MAKES_IDS else [_outcome_repr(call.method, returned), state]

    async def look(self) -> None:
        """Check that nothing has changed since the calls that were refused or only read."""
        unseen, self._unseen = self._unseen, []
        if unseen and await self._whole() != self._state:
            raise _WrongError(f"something changed although all were refused or only read: {list(map(str, unseen))}")

    async def _unchanged(self, call: OddCall) -> None:
        self._unseen.append(call)
        if len(self._unseen) >= _WORTH_A_LOOK:
            await self.look()

    async def _whole(self) -> tuple[object, ...]:
        """Return everything that is stored, all of it readable."""
        try:
            items = await listed(self._reader, None)
            verified = await self._reader.averify(decode=True)
            infos = (await self._reader.alist_threads(sort="id", limit=100)).threads
        except Exception as error:
            raise _WrongError(f"nothing can be read any more: {type(error).__name__}: {error}") from error
        if found := verified.problems + verified.unreadable:
            raise _WrongError(f"verify found {found}")
        threads = {item.config["configurable"]["thread_id"] for item in items}
        if verified.threads < len(threads) or verified.checkpoints != len(items):
            raise _WrongError(f"verify saw {verified}, listed are {len(items)} checkpoints of {threads}")
        return [_exact(item) for item in items], verified[:3], [_without_times(info) for info in infos]

    async def _reads_back(self, call: OddCall, returned: Any) -> None:
        """Check that stored data equals the arguments; calls that only read or remove have nothing to compare."""
        original = call.arguments(self._thread)
        assert original is not None
        if call.method == "put":
            found = await self._reader.aget_tuple(returned)
            if found is None:
                raise _WrongError("what was put is not there")
            if _fields(found.checkpoint) != _fields(_as_stored(original["checkpoint"])):
                raise _WrongError(f"put {short_repr(original['checkpoint'])}, got {short_repr(found.checkpoint)}")
            if (
                not _as_json(original["metadata"]).items()
                <= {k: json.dumps(v) for k, v in found.metadata.items()}.items()
            ):
                raise _WrongError(f"put {short_repr(original['metadata'])}, got {short_repr(found.metadata)}")
        else:
            writes = [(_text(original["task_id"]), _text(channel), value) for channel, value in original["writes"]]
            found = await self._reader.aget_tuple(original["config"])
            if found is None and writes:  # they came before their checkpoint
                where = original["config"]["configurable"]
                name = where["checkpoint_id"]
                made = checkpoint(checkpoint_id=str(name) if isinstance(name, UUID) else _text(name))
                await self._saver.aput({"configurable": {**where, "checkpoint_id": None}}, made, {}, {})
                found = await self._reader.aget_tuple(original["config"])
            stored = [_exact(write) for write in (found.pending_writes or []) if write[0] != "task"] if found else []
            if stored != [_exact(write) for write in writes]:
                raise _WrongError(f"put {short_repr(writes)}, got {short_repr(found and found.pending_writes)}")


async def _made(saver: Saver, method: str, arguments: dict[str, Any]) -> Any:
    if method == "get_next_version":
        return saver.get_next_version(**arguments)
    if method == "list":
        return [item async for item in saver.alist(**arguments)]
    return await getattr(saver, f"a{method}")(**arguments)


def _outcome_repr(method: str, returned: Any) -> object:
    """Return the part of a result on which all backends must agree."""
    if method == "get_next_version":
        return returned.partition(".")[0] if isinstance(returned, str) else returned
    return _AGREED.get(type(returned), _exact)(returned)


def _without_times(info: ThreadInfo) -> object:
    """Return a thread without its times, which differ from one saver to the next."""
    exact = info._replace(created_at=info.created_at.min, updated_at=info.updated_at.min, size_bytes=0, expires_at=None)
    return _exact(tuple(exact)), info.expires_at is None


def _without_time(entry: HistoryEntry) -> object:
    return _exact([*entry[:3], *entry[4:8], len(entry.writes), entry.metadata, entry.problem])


def _exact(value: Any) -> object:
    """Return a value that is equal only for equal values of the same types."""
    return _SERDE.dumps_typed(value)


_SERDE = Serde()

_AGREED: Mapping[type, Callable[[Any], object]] = {
    PruneReport: lambda pruned: (pruned.checkpoints, pruned.writes),
    Stats: lambda stats: (stats.checkpoints, stats.writes),
    VerifyReport: lambda verified: verified[:3],
    RetentionReport: lambda report: (report[:5], report.pruned.checkpoints),
    ThreadInfo: _without_times,
    HistoryPage: lambda page: ([_without_time(entry) for entry in page.entries], page.cursor is None),
    Tree: lambda tree: ([(node.id, node.branch) for node in tree.nodes], _exact(tree.branches)),
    Blame: lambda blame: (blame.path, _exact(blame.value), _without_time(blame.entry)),
    ThreadPage: lambda page: ([_without_times(info) for info in page.threads], page.cursor is None),
}
"""The part of a method's result on which all backends must agree; for other methods it is all of it."""


def _fields(made: Mapping[str, Any]) -> list[object]:
    """Return the fields of a checkpoint, without their order."""
    return sorted(map(_exact, made.items()))  # type: ignore[type-var]  # pairs of text and bytes


def _as_stored(original: Mapping[str, Any]) -> dict[str, Any]:
    """Return a checkpoint as it comes back: names are plain text, and no channels are an empty dictionary."""
    expected = {**original, "id": _text(original["id"])}
    for field in ("channel_values", "channel_versions"):
        expected[field] = {_text(name): value for name, value in (expected.get(field) or {}).items()}
    return expected


def _as_json(metadata: Mapping[str, Any]) -> dict[str, str]:
    return {key: json.dumps(json.loads(json.dumps(value))) for key, value in metadata.items()}


def _text(name: Any) -> str:
    return str.__str__(name)
