"""The routes that read and change threads, over the public methods of a saver."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.routing import Route

import threadmark
from threadmark import ConfigError, SaverProtocol, SerializationError
from threadmark.saver.paths import parse_path
from threadmark.serde.steps import NOTHING, taken
from threadmark.types import HistoryEntry
from threadmark_cli.effects import is_ledger
from threadmark_cli.page.answers import BadRequest, NotThere, Refused, answering
from threadmark_cli.page.effects import StepEffects
from threadmark_cli.page.items import ItemsApi
from threadmark_cli.page.nodes import Budget, Cut, Window, changes_of, channel_path, node_of
from threadmark_cli.page.parameters import Parameters, body_of
from threadmark_cli.page.shapes import (
    change_shape,
    config_of,
    entry_shape,
    match_shape,
    problem_shape,
    thread_shape,
    time_text,
    tree_shape,
    writers_shape,
)
from threadmark_cli.page.states import changes_in, contents_of, is_snapshot, snapshot_of
from threadmark_cli.page.trees import Trees
from threadmark_cli.page.waiting import waiting_of

_MOST_ROWS = 500
_MOST_ITEMS = 500
_MOST_CHARACTERS = 1_000_000
_ITEMS = 50
_CHARACTERS = 100_000


class About(NamedTuple):
    """The facts about the database on the page."""

    backend: str
    url: str
    """Without a password."""
    write: bool
    version: str = threadmark.__version__
    items: bool = False
    """Whether there can be items of stores."""


class Api:
    """The endpoints. Each returns the content of the JSON to send, or raises."""

    def __init__(self, saver: SaverProtocol, about: About) -> None:
        self._items = ItemsApi(saver.without_classes())
        self._about = about._replace(items=self._items.are_there)
        self._saver = saver.without_classes()
        self._writer = saver
        self._trees = Trees(self._saver)
        self._effects = StepEffects(self._saver)

    def routes(self) -> list[Route]:
        """Return the routes."""
        reading = {
            "about": self.about,
            "threads": self.threads,
            "thread": self.thread,
            "waiting": self.waiting,
            "history": self.history,
            "tree": self.tree,
            "checkpoint": self.checkpoint,
            "value": self.value,
            "diff": self.diff,
            "blame": self.blame,
            "search": self.search,
        }
        changing = {"fork": self.fork, "restore": self.restore}
        return [
            *self._items.routes(),
            *(Route(f"/api/{name}", answering(endpoint), methods=["GET"]) for name, endpoint in reading.items()),
            *(Route(f"/api/{name}", answering(endpoint), methods=["POST"]) for name, endpoint in changing.items()),
        ]

    async def about(self, _: Request) -> Mapping[str, Any]:
        """Return which database this is."""
        return self._about._asdict()

    async def threads(self, request: Request) -> Mapping[str, Any]:
        """Return a page of threads."""
        parameters = Parameters(request)
        filters: Any = {
            "text": parameters.get("text"),
            "status": parameters.get("status"),
            "owner": parameters.get("owner"),
        }
        filters = {name: value for name, value in filters.items() if value}
        if (metadata := parameters.dictionary("metadata")) is not None:
            filters["metadata"] = metadata
        page = await self._saver.alist_threads(
            **filters,
            sort=parameters.get("sort") or "-updated",  # type: ignore[arg-type]  # the saver says which there are
            limit=parameters.number("limit", 50, _MOST_ROWS),
            cursor=parameters.get("cursor") or None,
        )
        found: dict[str, Any] = {"threads": [thread_shape(info) for info in page.threads], "cursor": page.cursor}
        if parameters.get("count") == "1":
            found["total"] = await self._saver.acount_threads(**filters)
        return found

    async def thread(self, request: Request) -> Mapping[str, Any]:
        """Return one thread, and its namespaces."""
        thread = Parameters(request).text("thread")
        info = await self._saver.aget_thread(thread)
        if info is None:
            raise NotThere(f"there is no thread {thread!r}")
        shape, namespaces = thread_shape(info), await self._trees.namespaces(info)
        checkpoints = info.checkpoints - await self._trees.of_effects(info)
        return {**shape, "namespaces": namespaces, "checkpoints": checkpoints}

    async def waiting(self, request: Request) -> Mapping[str, Any]:
        """Return the questions and errors of a thread that is interrupted or failed."""
        thread = Parameters(request).text("thread")
        info = await self._saver.aget_thread(thread)
        return {"tasks": [] if info is None else await waiting_of(self._saver, info)}

    async def history(self, request: Request) -> Mapping[str, Any]:
        """Return a page of checkpoints."""
        parameters = Parameters(request)
        thread, ns = parameters.text("thread"), parameters.get("ns")
        page = await self._saver.ahistory(
            thread,
            ns=ns,
            limit=parameters.number("limit", 50, _MOST_ROWS),
            cursor=parameters.get("cursor") or None,
        )
        problems = [problem._asdict() for problem in page.problems]
        entries = [entry for entry in page.entries if ns is not None or not is_ledger(entry.ns)]
        states = await self._effects.states(thread, entries)
        shapes = [{**entry_shape(entry), "effects": [] if entry.ns else states.get(entry.id, [])} for entry in entries]
        return {"entries": shapes, "cursor": page.cursor, "problems": problems}

    async def tree(self, request: Request) -> Mapping[str, Any]:
        """Return the newest checkpoints of a thread, and their branches."""
        return tree_shape(await self._saver.atree(Parameters(request).text("thread")))

    async def checkpoint(self, request: Request) -> Mapping[str, Any]:
        """Return a checkpoint with its state and its pending writes."""
        parameters = Parameters(request)
        thread, ns, checkpoint_id = parameters.text("thread"), parameters.get("ns") or "", parameters.get("id") or None
        entry = await self._entry(thread, ns, checkpoint_id)
        if entry is None:  # if it is missing by damage, this says so
            await self._saver.aget_tuple(config_of(thread, ns, checkpoint_id))
            raise _no_checkpoint(thread, ns, checkpoint_id)
        contents = await contents_of(self._saver, thread, entry)
        if contents is None:
            raise _no_checkpoint(thread, ns, entry.id)
        is_newest = checkpoint_id is None  # which has no children
        effects, problem = await self._effects.of(thread, entry)
        return {
            **_checkpoint_shape(thread, entry),
            "writers": writers_shape(entry.changed, await self._parent_writes(thread, entry)),
            "next_ids": [] if is_newest else await self._trees.children(thread, entry.ns, entry.id),
            "channels": contents.channels,
            "writes": contents.writes,
            "effects": effects,
            "problem": problem_shape(contents.problem or entry.problem or problem),
        }

    async def value(self, request: Request) -> Mapping[str, Any]:
        """Return the value at a path, of the state or of a pending write, or some of its items or characters."""
        parameters = Parameters(request)
        config = config_of(parameters.text("thread"), parameters.get("ns") or "", parameters.get("id") or None)
        limit = parameters.number("limit", _ITEMS, _MOST_CHARACTERS) if "limit" in parameters else None
        window = Window(parameters.number("offset", 0, 10**15), limit)
        cut = Cut(2, min(limit or _ITEMS, _MOST_ITEMS), limit or _CHARACTERS)
        budget = Budget(characters=_MOST_CHARACTERS)
        if "write" in parameters:
            value = await self._written(config, parameters.number("write", 0, 10**9), parameters.get("path") or "")
            return node_of(value, budget, cut, window)
        path = parameters.text("path")
        if parse_path(path).steps == () and (total := await self._length(config, path)):
            some = await self._saver.aextract(config, f"{path}[{window.offset}:{window.offset + cut.items}]", NOTHING)
            if some is not NOTHING:
                return node_of(some, budget, cut, window, total)
        try:
            value = await self._saver.aextract(config, path, NOTHING)
        except ConfigError:
            return await self._delta(config, path, budget, cut, window)
        if value is NOTHING:
            raise NotThere(f"this checkpoint has no value at {path!r}")
        return node_of(value, budget, cut, window)

    async def diff(self, request: Request) -> Mapping[str, Any]:
        """Return the differences between two checkpoints."""
        parameters = Parameters(request)
        thread, ns, b = parameters.text("thread"), parameters.get("ns") or "", parameters.text("b")
        a = parameters.get("a")
        if a is None:
            entry = await self._entry(thread, ns, b)
            if entry is None:
                raise _no_checkpoint(thread, ns, b)
            a = entry.parent
        budget, cut = Budget(), Cut(2, 20)
        if a is None:
            return await self._all_added(config_of(thread, ns, b), b, budget, cut)
        found = await self._saver.adiff(
            config_of(thread, ns, a),
            config_of(thread, ns, b),
            path=parameters.get("path") or None,
            limit=parameters.number("limit", 200, _MOST_ROWS),
        )
        return {
            "a": a,
            "b": b,
            "changes": [change_shape(change, budget, cut) for change in found.changes],
            "equal": found.equal,
            "left_out": found.left_out,
            "bytes_read": found.bytes_read,
        }

    async def blame(self, request: Request) -> Mapping[str, Any] | None:
        """Return which checkpoint first held a value."""
        parameters = Parameters(request)
        config = config_of(parameters.text("thread"), parameters.get("ns") or "", parameters.get("id") or None)
        found = await self._saver.ablame(config, parameters.text("path"))
        if found is None:
            return None
        return {"path": found.path, "value": node_of(found.value, Budget()), "entry": entry_shape(found.entry)}

    async def search(self, request: Request) -> Mapping[str, Any]:
        """Return the places of a text."""
        parameters = Parameters(request)
        page = await self._saver.asearch(
            parameters.text("thread"),
            parameters.text("text"),
            ns=parameters.get("ns"),
            limit=parameters.number("limit", 20, _MOST_ROWS),
            cursor=parameters.get("cursor") or None,
        )
        return {
            "matches": [match_shape(match) for match in page.matches],
            "cursor": page.cursor,
            "problems": [problem_shape(problem) for problem in page.problems],
        }

    async def fork(self, request: Request) -> Mapping[str, Any]:
        """Begin a branch, or a separate thread."""
        self._expect_write()
        body = await body_of(request, {"thread": str, "ns": str, "id": str, "values": dict, "as_thread": str})
        values = body.get("values") or None
        try:
            config = await self._writer.afork(_named(body), values, as_thread=body.get("as_thread"))
        except SerializationError as error:
            raise BadRequest(str(error)) from error
        return {"config": config}

    async def restore(self, request: Request) -> Mapping[str, Any]:
        """Make a checkpoint the newest again."""
        self._expect_write()
        body = await body_of(request, {"thread": str, "ns": str, "id": str})
        return {"config": await self._writer.arestore(_named(body))}

    def _expect_write(self) -> None:
        if not self._about.write:
            raise Refused("you can only read here: start `threadmark serve --write` to change threads")

    async def _length(self, config: Mapping[str, Any], path: str) -> int:
        """Return how many items a channel that is a list has, without decoding them; 0 for any other."""
        try:
            page = await self._saver.aextract_items(config, limit=0, channel=parse_path(path).channel)
        except ConfigError:  # it is no list
            return 0
        return page.total

    async def _delta(
        self, config: Mapping[str, Any], path: str, budget: Budget, cut: Cut, window: Window
    ) -> Mapping[str, Any]:
        """Return a part of a delta channel, as far as it can be read without the graph."""
        channel, steps = parse_path(path)
        found = await self._saver.aget_tuple(config)
        value = found.checkpoint["channel_values"].get(channel, NOTHING) if found else NOTHING
        if is_snapshot(value) and (part := taken(snapshot_of(value), steps)) is not NOTHING:
            return node_of(part, budget, cut, window)
        if found is None or steps:
            raise NotThere(f"cannot read {path!r} here: LangGraph keeps the channel as changes")
        parts = await changes_in(self._saver, config, [channel])
        return changes_of(parts[channel], budget, cut, window)

    async def _written(self, config: Mapping[str, Any], number: int, steps: str) -> Any:
        """Return the value of a pending write, or a part of it."""
        found = await self._saver.aget_tuple(config)
        writes = (found.pending_writes or []) if found else []
        value = NOTHING
        if number < len(writes):
            value = taken(writes[number][2], parse_path(f"write{steps}").steps)
        if value is NOTHING:
            raise NotThere(f"write {number} of this checkpoint has no value at {steps!r}")
        return value

    async def _entry(self, thread: str, ns: str, checkpoint_id: str | None) -> HistoryEntry | None:
        """Return a checkpoint without its values, the newest if none is named."""
        config = config_of(thread, ns, checkpoint_id)
        page = await self._saver.ahistory(config, ns=ns, limit=1)
        return page.entries[0] if page.entries else None

    async def _parent_writes(self, thread: str, entry: HistoryEntry) -> Sequence[Any]:
        parent = await self._entry(thread, entry.ns, entry.parent) if entry.parent else None
        return parent.writes if parent else ()

    async def _all_added(self, config: Mapping[str, Any], b: str, budget: Budget, cut: Cut) -> Mapping[str, Any]:
        """Return the difference from nothing, for a checkpoint without a parent."""
        found = await self._saver.aget_tuple(config)
        values = found.checkpoint["channel_values"] if found else {}
        changes = [
            {"path": channel_path(name), "kind": "added", "after": node_of(value, budget, cut), "edits": []}
            for name, value in values.items()
        ]
        return {"a": None, "b": b, "changes": changes, "equal": [], "left_out": 0, "bytes_read": None}


def _no_checkpoint(thread: str, ns: str, checkpoint_id: str | None) -> NotThere:
    which = f"checkpoint {checkpoint_id!r}" if checkpoint_id else "checkpoint"
    return NotThere(f"there is no {which} in thread {thread!r}, namespace {ns!r}")


def _named(body: Mapping[str, Any]) -> dict[str, Any]:
    return config_of(body.get("thread") or "", body.get("ns") or "", body.get("id") or None)


def _checkpoint_shape(thread: str, entry: HistoryEntry) -> dict[str, Any]:
    return {
        "config": config_of(thread, entry.ns, entry.id),
        "ns": entry.ns,
        "id": entry.id,
        "parent": entry.parent,
        "created_at": time_text(entry.created_at),
        "metadata": entry.metadata,
        "step": entry.step,
        "source": entry.source,
        "nodes": entry.nodes,
        "changed": entry.changed,
    }
