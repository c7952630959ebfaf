"""The page's items: its API with owners, damage and odd names, and the list and an item in Chromium."""

from collections.abc import Iterator
from typing import Any

import pytest

from page.browser import Browser
from page.browser import served as served_in_browser
from page.test_api import ODD, asking
from page.test_browser_ease import fits
from threadmark import MemorySaver, Saver
from threadmark.program import Transaction
from threadmark_store import Store
from threadmark_store.backends import rows_over

NAME = ODD.replace("\ud800", "")  # chromedriver cannot return it


@pytest.fixture
def saver() -> Iterator[Saver]:
    with MemorySaver() as saver:
        store = Store(saver)
        store.put(("users", "ada"), "diet", {"kind": "vegetarian", "likes": [{"name": f"dish {n}"} for n in range(70)]})
        store.put(("users", "bob"), NAME, {"text": NAME, "pair": (1, 2)})
        Store(saver.for_owner("eve")).put(("notes",), "secret", {"text": "of eve"})
        yield saver


def _damage(saver: Saver, key: str) -> None:
    items = rows_over(saver, "items")

    def spoil() -> Any:
        rows = yield from items.in_key_order(_all(), None, 100)
        yield from items.put([row._replace(check=0) for row in rows if row.key.key == key])

    saver._driver.run(Transaction(spoil, writes=True))


def _all() -> Any:
    from threadmark_store.shapes import Scope

    return Scope()


def test_items_come_in_pages_and_in_parts(saver: Saver) -> None:
    with asking(saver) as ask:
        assert ask("about")["items"] is True
        first = ask("items", limit=2, count=1)
        assert ([each["key"] for each in first["items"]], first["total"]) == (["secret", NAME], 3)
        second = ask("items", limit=2, cursor=first["cursor"])
        assert ([each["key"] for each in second["items"]], second["cursor"]) == (["diet"], None)
        assert [each["namespace"] for each in ask("items", prefix="users")["items"]] == ["users.bob", "users.ada"]
        assert ask("namespaces")["namespaces"] == ["notes", "users.ada", "users.bob"]
        assert ask("namespaces", limit=1) == {"namespaces": ["notes"], "left_out": 2}
        item = ask("item", namespace="users.ada", key="diet")
        assert dict(item["fields"])["kind"]["v"] == "vegetarian"
        part = ask("item", namespace="users.ada", key="diet", path="likes", offset=60, limit=5)
        assert (part["n"], len(part["items"])) == (70, 5)
        assert ask("item", namespace="users.bob", key=NAME, path="text")["v"] == NAME
        ask("item", 404, namespace="users.ada", key="none")
        ask("item", 404, namespace="users.ada", key="diet", path="none[0]")
        for cursor in ("x", "[]", "[1.5, 1, 2]", '[99999999999999999999, "a", "b"]', "[" * 15_000):
            ask("items", 400, cursor=cursor)


def test_an_owner_is_shown_own_items_and_nobody_can_change_one(saver: Saver) -> None:
    with asking(saver.for_owner("eve"), write=True) as ask:
        assert [each["key"] for each in ask("items", count=1)["items"]] == ["secret"]
        assert ask("namespaces")["namespaces"] == ["notes"]
        ask("item", 404, namespace="users.ada", key="diet")
        for route in ("items", "item"):
            assert ask.client.post(f"/api/{route}", json={}).status_code == 405
            assert ask.client.delete(f"/api/{route}").status_code == 405


def test_a_damaged_item_is_named_and_hides_no_other(saver: Saver) -> None:
    _damage(saver, "diet")
    with asking(saver) as ask:
        problems = {each["key"]: each["problem"] for each in ask("items")["items"]}
        assert "do not belong together" in problems.pop("diet")
        assert set(problems.values()) == {None}
        found = ask("item", namespace="users.ada", key="diet")
        assert (found["fields"], found["problem"] is None) == ([], False)


def test_items_are_listed_searched_and_shown(page: Browser, saver: Saver) -> None:
    with served_in_browser(saver) as address:
        page.open(address)
        page.click("#kinds a", "Items")
        page.sees("#items .total", "3 items")
        page.find("[aria-label=Namespace]").send_keys("users.ada")
        page.until(lambda: page.texts("[data-list=items] .row-title") == ["diet"])
        assert page.hash == {"items": "users.ada"}
        page.click("[data-list=items] .row", "diet")
        page.sees("#item h2", "diet")
        page.sees("[data-path='kind'] .preview", "vegetarian")
        page.click("[data-path='likes'] > .node-row")
        page.sees("[data-path='likes[49]']", "dish 49")
        page.find("[aria-label=Namespace]").clear()
        page.find("[aria-label=Namespace]").send_keys("users")
        page.until(lambda: len(page.texts("[data-list=items] .row-title")) == 2)
        page.click("[data-list=items] .row", "users.bob")
        page.sees("[data-path='text'] .preview", "<script>alert(1)</script>")
        page.resize(360, 740)
        fits(page, "#item .values .node")
        page.click("#item .back")
        fits(page, "[data-list=items] .row")
        page.click("#kinds a", "Threads")
        page.sees("#threads .message", "No threads yet")
