"""Rare cases, in a real Chromium: damage, ids that are no text, many tabs, quick typing."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

import threadmark
from page.browser import Browser, served
from page.small import put
from threadmark import SaverProtocol
from threadmark_sqlite import SqliteSaver

LONE = "half \ud83d a pair"
TABS = 6
"""Besides the first one: more than the connections that a browser has to one server."""


@pytest.fixture(scope="module")
def saver() -> Iterator[SaverProtocol]:
    """Return a saver of two short threads."""
    with threadmark.open("memory:") as saver:
        config = put(saver, "t", 0, {"plan": "none"})
        put(saver, "t", 1, {"plan": "go left"}, config)
        put(saver, LONE, 0, {LONE: [LONE, "last " * 40]})
        yield saver


@pytest.fixture(scope="module")
def address(saver: SaverProtocol) -> Iterator[str]:
    """Return the address of a page that only reads."""
    with served(saver) as address:
        yield address


def test_damage_to_a_channel_leaves_the_others_to_be_seen(page: Browser, tmp_path: Path) -> None:
    file = tmp_path / "t.db"
    with SqliteSaver(file) as saver:
        put(saver, "t", 0, {"text": "4711" * 1_000, "plan": "go left"})
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE threadmark_segment SET data = x'00'")
    with SqliteSaver(file) as saver, served(saver) as address:
        page.open(address, thread="t")
        page.sees("[data-path=plan] .preview", "go left")
        page.sees("[data-path=text] .type", "damaged")
        page.sees("#checkpoint .failure", "damaged")
        page.go(thread="t", list="search", find="left")
        page.sees("#thread .failure", "Some checkpoints could not be searched. damaged")
        page.leave()  # before its server ends


def test_an_id_that_is_no_text_is_opened(page: Browser, address: str) -> None:
    page.open(address)
    page.click("[data-list=threads] .row", "half")
    page.sees("#checkpoint h2", "step 0")
    page.sees("#thread .live", "live")
    page.driver.refresh()
    page.sees("#checkpoint h2", "step 0")
    page.click("#checkpoint .values [aria-level='2'] > .node-row", "last")
    page.click("#checkpoint .tabs a", "Changes")
    page.sees("#checkpoint .view", "First checkpoint")


def test_many_tabs_follow_threads_and_all_are_answered(page: Browser, address: str) -> None:
    page.open(address, thread="t")
    page.sees("#thread .live", "live")
    first, *_ = page.driver.window_handles
    try:
        for _ in range(TABS):
            page.driver.switch_to.new_window("tab")
            page.driver.get(page.address(address, thread="t"))
            page.sees("#checkpoint h2", "step 1")
            page.sees("#thread .live", "live")
    finally:
        for handle in set(page.driver.window_handles) - {first}:
            page.driver.switch_to.window(handle)
            page.driver.close()
        page.driver.switch_to.window(first)
    page.sees("#thread .live", "live")


def test_a_tab_that_is_seen_again_shows_what_was_stored_meanwhile(
    page: Browser, address: str, saver: SaverProtocol
) -> None:
    config = put(saver, "seen again", 0, {"n": 0})
    page.open(address, thread="seen again")
    page.sees("#thread .live", "live")
    first = page.driver.current_window_handle
    page.driver.switch_to.new_window("tab")
    put(saver, "seen again", 1, {"n": 1}, config)
    page.driver.close()
    page.driver.switch_to.window(first)
    page.sees("#checkpoint h2", "step 1")
    page.sees("#thread .row", "step 1")
    page.sees("#thread .live", "live")


def test_who_types_faster_than_the_rows_come_jumps_all_the_same(page: Browser, address: str) -> None:
    page.open(address, thread="t")
    page.sees("#checkpoint h2", "step 1")
    page.run("""
        const ask = window.fetch;
        window.fetch = async (...asked) => {
          if (asked[0].startsWith("/api/tree")) await new Promise((go) => { window.go = go; });
          return ask(...asked);
        };
    """)
    page.press("g")
    page.sees("dialog h2", "Jump")
    page.press("0", Keys.ENTER)
    page.until(lambda: page.run("return document.querySelector('dialog input').value") == "0")
    page.run("window.go()")
    page.sees("#checkpoint h2", "step 0")
