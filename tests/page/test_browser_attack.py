"""Whatever is stored, the page shows it as text: no script of anybody runs in it, and nothing is loaded for it."""

from collections.abc import Iterator
from typing import Any

import pytest

import threadmark
from page.browser import Browser, served
from page.small import put
from threadmark import SaverProtocol

SCRIPT = "<script>window.ran = 1; alert(1)</script>"
MARKUP = f"""{SCRIPT}<img src="http://198.51.100.7/x" onerror="window.ran = 2">"'`><svg onload=window.ran=3>"""
LINK = "javascript:window.ran=4"
CODE = '"}}; import os # {{constructor.constructor("window.ran=5")()}}${window.ran=6}\n\\'
ATTACKS = (MARKUP, LINK, CODE)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Return the address of a page of threads in which every text is an attack."""
    with threadmark.open("memory:") as saver:
        for attack in ATTACKS:
            fill(saver, attack)
        with served(saver, write=True, url=f"sqlite:///{SCRIPT}.db") as address:
            yield address


def fill(saver: SaverProtocol, attack: str) -> None:
    values = {attack: {attack: attack, "many": [attack] * 60, "deep": [[[[attack]]]]}, "text": f"{attack}\n" * 20}
    config = put(saver, attack, 0, {**values, "text": "before"})
    config["metadata"] = {attack: attack}
    config = put(saver, attack, 1, values, config)
    saver.put_writes(config, [(attack, attack), ("__error__", attack), ("__interrupt__", {attack: attack})], attack)
    below = {"configurable": {"thread_id": attack, "checkpoint_ns": attack}}
    put(saver, attack, 0, values, below)
    saver.update_thread(attack, title=attack, metadata={attack: attack}, owner=attack)


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_stored_script_is_text_wherever_it_stands(page: Browser, address: str, attack: str) -> None:
    line = attack.partition("\n")[0].strip()
    page.open(address, thread=attack, view="state")
    page.sees("#thread h2", line)
    page.sees("#threads .row-title", line)
    page.sees("#checkpoint .values .key", line)
    page.click("#checkpoint .values [aria-level='1'] > .node-row", line)  # folded
    page.click("#checkpoint .values [aria-level='1'] > .node-row", line)
    page.sees("#checkpoint .values [aria-level='2'] .key", line)
    page.click("[data-path='text'] > .node-row")
    page.sees("[data-path='text'] .text", line)
    for view, seen in (("Changes", ".change"), ("Writes", ".task"), ("Metadata", ".versions")):
        page.click("#checkpoint .tabs a", view)
        page.sees(seen, line)
    page.click("#thread .tabs a", "Tree")
    page.sees(".tree .row-ns", line)
    page.click("#thread .tabs a", "Search")
    page.find("[aria-label='Search this thread']").send_keys(line)
    page.sees("[data-list=matches] mark", line)
    page.click("[data-action=config]")
    page.sees(".toast", "copied")
    names: dict[str, Any] = {}
    exec(page.clipboard(), names)  # noqa: S102 - an attacker's text must not get out of its quotes
    assert names["config"]["configurable"]["thread_id"] == attack
    assert set(names) == {"config", "__builtins__"}

    assert page.run("return window.ran") is None
    assert page.run("return window.violations") == []
    assert page.run("return document.querySelectorAll('main script, main img, main iframe, main object').length") == 0
    hrefs = page.run("return [...document.querySelectorAll('[href]')].map((each) => each.getAttribute('href'))")
    assert all(href.startswith(("#", "/static/")) for href in hrefs)


def test_what_an_address_names_is_text_too(page: Browser, address: str) -> None:
    for attack in ATTACKS:
        page.open(
            address, thread=attack + "?", list=attack, view=attack, ns=attack, at=attack, text=attack, find=attack
        )
        page.sees("#thread .failure", "there is no thread")
        page.sees("#checkpoint .failure", "Not found")
        assert page.run("return window.ran") is None
    assert all("404" in said for said in page.complaints())


def test_the_policy_lets_no_script_in_by_any_way(page: Browser, address: str) -> None:
    page.open(address)
    page.run("""
        const script = document.createElement("script");
        try { script.textContent = "window.ran = 7"; } catch { }
        document.body.append(script);
        const image = document.createElement("img");
        image.src = "http://198.51.100.7/x";
        document.body.append(image);
    """)
    page.until(lambda: "img-src" in page.run("return window.violations"))
    assert page.run("return window.ran") is None
    refused = "try { document.body.innerHTML = '<p>'; return false } catch { return true }"
    assert page.run(refused)
    assert page.complaints()
