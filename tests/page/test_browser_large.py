"""The page on a thread of 5,000 checkpoints with a state of 10 MB: it draws the visible rows, and fetches on demand."""

import re
from collections.abc import Iterator

import pytest
from selenium.webdriver.common.keys import Keys

from page.browser import Browser, served
from page.large import CHECKPOINTS, THREAD, step_id
from threadmark import SaverProtocol
from threadmark_cli.page import shapes

MOST_ELEMENTS = 1_500


@pytest.fixture(scope="module")
def address(large: SaverProtocol) -> Iterator[str]:
    """Return the address of the page."""
    with served(large) as address:
        yield address


def is_bounded(page: Browser) -> None:
    assert page.run("return document.querySelectorAll('*').length") < MOST_ELEMENTS


@pytest.mark.parametrize("view", ["timeline", "tree"])
def test_only_the_rows_that_are_seen_are_drawn(page: Browser, address: str, view: str) -> None:
    page.open(address, thread=THREAD, list=view)
    page.sees("[data-list=checkpoints] .row", "step 4999")
    is_bounded(page)
    page.run("document.querySelector('[data-list=checkpoints]').focus()")
    page.press(Keys.END)
    page.sees("[data-list=checkpoints] .row.cursor", "step 0")
    is_bounded(page)
    page.press(Keys.PAGE_UP, Keys.ENTER)
    page.until(lambda: page.hash.get("at"))
    page.until(lambda: page.hash["at"] in page.text("#checkpoint .id"))
    page.press(Keys.HOME, Keys.ENTER)
    page.sees("#checkpoint h2", f"step {CHECKPOINTS - 1}")
    is_bounded(page)


def test_the_listing_of_threads_draws_what_is_seen(page: Browser, address: str) -> None:
    page.open(address)
    page.sees("#threads .total", "301 threads")
    page.run("document.querySelector('[data-list=threads]').focus()")
    page.press(Keys.END)
    page.sees("[data-list=threads] .row", "Thread number 0")
    is_bounded(page)


def test_an_address_deep_in_the_past_is_found_in_the_timeline(page: Browser, address: str) -> None:
    page.open(address, thread=THREAD, ns="", at=step_id(1_234))
    page.sees("#checkpoint h2", "step 1234")
    page.sees("#thread .row[aria-selected=true]", "step 1234")
    page.press("j", Keys.ENTER)
    page.sees("#checkpoint h2", "step 1233")
    page.press("g")
    page.sees("dialog .total", "5,000 checkpoints")
    is_bounded(page)
    page.press("4321", Keys.ENTER)
    page.sees("#thread .row[aria-selected=true]", "step 4321")
    is_bounded(page)


def test_a_large_state_is_fetched_as_far_as_one_looks(page: Browser, address: str) -> None:
    page.open(address, thread=THREAD)
    page.sees("[data-path='count'] .preview", "4999")
    page.sees("[data-path='documents'] .size", "2,500 items")
    assert page.fetched("/api/checkpoint") < 200_000
    page.click("[data-path='documents'] > .node-row")
    page.sees("[data-path='documents[49]'] .preview", "document 49")
    assert not page.all("[data-path='documents[50]']")
    page.click("[data-path='documents'] > .within > button", "Show 50 more of 2,500")
    page.sees("[data-path='documents[99]'] .preview", "document 99")
    page.click("[data-path='documents[99]'] > .node-row")
    page.sees("[data-path='documents[99]'] .text", "document 99 lorem ipsum")
    page.click("[data-path='documents[99]'] .within button", "Show all characters")
    page.until(lambda: len(page.text("[data-path='documents[99]'] .text")) > 3_990)

    page.go(thread=THREAD, path="documents[2400]")
    page.sees(".found .preview", "document 2400")
    page.click("[data-path='documents'] > .within > button", "Show earlier items")
    page.sees("[data-path='documents[2350]'] .preview", "document 2350")

    page.click("[data-path='essay'] > .node-row")
    essay = "[data-path='essay'] .within button"
    length = 300_000
    while page.all(essay):
        shown = len(page.text("[data-path='essay'] .text"))
        page.click(essay)
        page.until(lambda shown=shown: len(page.text("[data-path='essay'] .text")) > shown)  # type: ignore[misc]
    assert page.run("return document.querySelector(\"[data-path='essay'] .text\").textContent.length") == length


def test_a_change_beside_a_large_state_is_found_without_reading_it(page: Browser, address: str) -> None:
    page.open(address, thread=THREAD, view="changes")
    page.sees(".change h3", "count")
    page.sees(".equal", "documents")
    assert re.search(r"read \d+ B of values", page.find("#checkpoint .changes > .faint:last-child").text)


def test_a_tree_that_is_cut_says_how_much_is_older(
    page: Browser, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shapes, "MOST_NODES", 40)
    page.open(address, thread=THREAD, list="tree")
    page.sees(".branches .total", "older checkpoints in the timeline")
    page.run("document.querySelector('[data-list=checkpoints]').focus()")
    page.press(Keys.END)
    page.sees("[data-list=checkpoints] .row.cursor", f"step {CHECKPOINTS - 40}")
