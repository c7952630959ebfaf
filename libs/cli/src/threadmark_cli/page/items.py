"""The routes that read the items of stores. They change nothing, with `--write` either."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.routing import Route

from threadmark import ConfigError, MissingDependencyError, SaverProtocol
from threadmark.saver.paths import parse_path
from threadmark.serde.steps import NOTHING, taken
from threadmark_cli.exits import RefusedError
from threadmark_cli.items import items_in
from threadmark_cli.page.answers import BadRequest, NotThere, Refused, answering
from threadmark_cli.page.nodes import Budget, Cut, Window, node_of
from threadmark_cli.page.parameters import Parameters
from threadmark_cli.page.shapes import time_text

if TYPE_CHECKING:
    from threadmark_store.looking import Items, ItemView
    from threadmark_store.shapes import Place

_MOST_ROWS = 500
_MOST_ITEMS = 500
_MOST_CHARACTERS = 1_000_000
_ITEMS = 50
_CHARACTERS = 100_000
_BRIEF = Cut(1, 6, 80)


class ItemsApi:
    """The endpoints about items, of the saver's owner if it has one."""

    def __init__(self, saver: SaverProtocol) -> None:
        self._items: Items | None = None
        self._missing = ""
        try:
            self._items = items_in(saver)
        except (ConfigError, MissingDependencyError, RefusedError) as error:
            self._missing = str(error)

    def routes(self) -> list[Route]:
        """Return the routes."""
        reading = {"items": self.items, "item": self.item, "namespaces": self.namespaces}
        return [Route(f"/api/{name}", answering(endpoint), methods=["GET"]) for name, endpoint in reading.items()]

    @property
    def are_there(self) -> bool:
        """Whether there can be items."""
        return self._items is not None

    async def items(self, request: Request) -> Mapping[str, Any]:
        """Return a page of items, the last updated first."""
        parameters, items = Parameters(request), self._expect_items()
        prefix, limit = parameters.get("prefix") or "", parameters.number("limit", 50, _MOST_ROWS)
        found, after = await items.arun(items.page(prefix, limit, _place(parameters.get("cursor"))))
        budget = Budget()
        rows = [{**_shape(item), "value": node_of(item.value, budget.share(len(found)), _BRIEF)} for item in found]
        answer: dict[str, Any] = {"items": rows, "cursor": None if after is None else json.dumps([after[0], *after[1]])}
        if parameters.get("count") == "1":
            answer["total"], _ = await items.arun(items.count(prefix))
        return answer

    async def namespaces(self, request: Request) -> Mapping[str, Any]:
        """Return the first namespaces within another one."""
        parameters, items = Parameters(request), self._expect_items()
        names = await items.arun(items.namespaces(parameters.get("prefix") or ""))
        limit = parameters.number("limit", _MOST_ROWS, _MOST_ROWS)
        return {"namespaces": names[:limit], "left_out": max(len(names) - limit, 0)}

    async def item(self, request: Request) -> Mapping[str, Any]:
        """Return an item with its fields, or with `path` some items or characters of a value in it."""
        parameters, items = Parameters(request), self._expect_items()
        namespace, key = parameters.text("namespace"), parameters.text("key")
        found = await items.arun(items.item(namespace, key))
        if found is None:
            raise NotThere(f"there is no item {key!r} in namespace {namespace!r}")
        path = parameters.get("path")
        if path is None:
            budget = Budget()
            value = found.value or {}
            fields = [[str(name), node_of(each, budget.share(len(value)))] for name, each in value.items()]
            return {**_shape(found), "fields": fields}
        limit = parameters.number("limit", _ITEMS, _MOST_CHARACTERS) if "limit" in parameters else None
        window = Window(parameters.number("offset", 0, 10**15), limit)
        field, steps = parse_path(path)
        part = taken((found.value or {}).get(field, NOTHING), steps)
        if part is NOTHING:
            raise NotThere(f"this item has no value at {path!r}")
        cut = Cut(2, min(limit or _ITEMS, _MOST_ITEMS), limit or _CHARACTERS)
        return node_of(part, Budget(characters=_MOST_CHARACTERS), cut, window)

    def _expect_items(self) -> "Items":
        if self._items is None:
            raise Refused(self._missing)
        return self._items


def _shape(item: "ItemView") -> dict[str, Any]:
    return {
        "namespace": ".".join(item.namespace),
        "key": item.key,
        "created_at": time_text(item.created_at),
        "updated_at": time_text(item.updated_at),
        "expires_at": time_text(item.expires_at),
        "owner": item.owner,
        "bytes": item.bytes,
        "problem": item.problem,
    }


def _place(cursor: str | None) -> "Place | None":
    """Return the place of a cursor that an earlier answer had."""
    if not cursor:
        return None
    from threadmark_store.shapes import ItemKey, Place

    try:
        updated_at, namespace, key = json.loads(cursor)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadRequest("the cursor is not one of an earlier answer") from error
    if type(updated_at) is not int or abs(updated_at) >= 2**63 or type(namespace) is not str or type(key) is not str:
        raise BadRequest("the cursor is not one of an earlier answer")
    return Place(updated_at, ItemKey(namespace, key))
