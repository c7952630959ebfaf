"""Threads that wait, fail, go on and come, in a real Chromium: the page's messages about them, and their moments."""

import re
from collections.abc import Iterator

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

import threadmark
from page.browser import Browser, served
from page.lived import FAULT, QUESTION, lived_saver
from page.small import put
from threadmark import SaverProtocol

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@pytest.fixture(scope="module")
def lived() -> Iterator[str]:
    """Return the address of a page of threads that graphs have run."""
    with lived_saver() as saver, served(saver) as address:
        yield address


@pytest.fixture
def saver() -> Iterator[SaverProtocol]:
    """Return a saver of thirty short threads, of which "thread 29" was used last."""
    with threadmark.open("memory:") as saver:
        for number in range(30):
            put(saver, f"thread {number}", 0, {"count": 0})
        yield saver


@pytest.fixture
def address(page: Browser, saver: SaverProtocol) -> Iterator[str]:
    """Return the address of a page of these threads. The window leaves it before its server ends."""
    with served(saver) as address:
        point(page, 1_300, 30)
        yield address
        page.leave()


def point(page: Browser, x: int, y: int) -> None:
    """Move the mouse."""
    page.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})


def titles(page: Browser) -> list[str]:
    """Return the names of the threads that are drawn, from the top on."""
    script = """
        const rows = [...document.querySelectorAll("[data-list=threads] .row")];
        rows.sort((one, other) => one.dataset.index - other.dataset.index);
        return rows.map((row) => row.querySelector(".row-title")?.textContent);
    """
    found: list[str] = page.run(script)
    return found


def place(page: Browser, title: str) -> float:
    """Return the top of a thread's row on the screen."""
    return float(page.run("return arguments[0].getBoundingClientRect().top", page.find(".row-title", title)))


def test_a_delta_channel_is_shown_calmly_with_what_it_is_made_of(page: Browser, lived: str) -> None:
    page.open(lived, thread="asking")
    page.sees("[data-path=log] .type", "kept as changes")
    page.sees("[data-path=log] .preview", "1 change")
    page.sees("[data-path=log] .within .preview", '["written"]')
    page.sees("[data-path=log] .note", "graph.get_state(config).values")
    colour = "return getComputedStyle(document.querySelector(arguments[0])).color"
    assert page.run(colour, "[data-path=log] .type") == page.run(colour, "[data-path=draft] .type")
    assert not page.all("#checkpoint [data-type=unread], #checkpoint .failure")
    page.click("#checkpoint .tabs a", "Changes")
    page.sees(".equal", "Kept as changes, not compared (see State): log")


def test_a_snapshot_of_a_delta_channel_is_shown_as_its_value(page: Browser, lived: str) -> None:
    page.open(lived, thread="noting")
    page.sees("[data-path=log] .preview", "snapshot and 1 change")
    page.sees("[data-path=log] .within .preview", '"line 3"')
    page.click("#checkpoint .tabs a", "Changes")
    page.sees(".equal", "Kept as changes, not compared (see State): log")
    assert not page.all(".change")
    page.go(thread="noting")
    page.click("#checkpoint .tools a", "Parent")
    page.sees("#checkpoint h2", "step 3")
    page.sees("[data-path='log[3]'] .preview", "line 3")
    page.sees("[data-path=log] > .node-row .word", "kept as changes")


def test_an_interrupted_thread_shows_its_question_and_the_node_that_waits(page: Browser, lived: str) -> None:
    page.open(lived, thread="asking")
    page.sees("#thread .wait", f"confirm waits for your answer: {QUESTION}")
    assert page.text("#checkpoint .tabs [aria-current]").startswith("State")
    page.click("#thread .wait")
    page.sees(".task[data-kind=interrupt]", "review")
    page.sees("#checkpoint .view", "The next step waits for your answer.")
    page.go(thread="finished")
    page.sees("#thread h2", "finished")
    page.gone("#thread .wait")
    assert "null" not in page.text("#thread .pane-head")


def test_an_unfinished_thread_shows_its_next_nodes(page: Browser, lived: str) -> None:
    page.open(lived, thread="noting")
    page.sees("#thread .facts .word[data-status=unfinished]", "unfinished")
    page.sees("#thread .facts .next", "next: review")
    page.go(status="unfinished")
    page.sees("[data-list=threads] .row", "noting")
    assert len(page.all("[data-list=threads] .row")) == 1
    page.go(thread="finished")
    page.sees("#thread h2", "finished")
    page.gone("#thread .next")


def test_a_failed_thread_opens_on_its_error_and_the_checkpoint(page: Browser, lived: str) -> None:
    page.open(lived)
    page.click("[data-list=threads] .row", "failing")
    page.sees(".task[data-kind=error]", FAULT)
    page.sees("#checkpoint h2", "step 0")
    page.sees("#thread .row[aria-selected=true]", "error")
    page.sees("#thread .wait[data-kind=error]", f"print failed: RuntimeError: {FAULT}")
    assert not page.all("#checkpoint .message")
    page.click("#checkpoint .tabs a", "State")
    page.sees("#checkpoint .message", "Empty state")
    page.go(thread="finished")
    page.sees("#checkpoint .values", "pages")  # the next thread opens on its state


@pytest.mark.parametrize("view", ["timeline", "tree"])
def test_a_namespace_is_its_nodes_and_the_uuid_is_in_the_title(page: Browser, lived: str, view: str) -> None:
    page.open(lived, thread="asking", list=view)
    page.sees("#thread .row .row-ns", "review:")
    page.sees("#thread .row .row-title", "proofread")
    node = page.find("#thread .row .row-title", "proofread")
    assert page.run("return arguments[0].scrollWidth <= arguments[0].clientWidth", node)
    assert not UUID.search(page.text("#thread"))
    assert UUID.search(page.find("#thread .row .row-ns").get_attribute("title") or "")
    page.click("[aria-label=Namespace] option", "review:")
    page.until(lambda: UUID.search(page.hash.get("in", "")))
    page.until(lambda: len(page.all("#thread .row")) == 3)
    page.click("#thread .row", "proofread")
    page.sees("#checkpoint .facts .row-ns", "review:")
    assert not UUID.search(page.text("#checkpoint .facts .row-ns"))


def test_compare_lists_the_nodes_of_each_step_and_finds_them(page: Browser, lived: str) -> None:
    page.open(lived, thread="finished")
    page.sees("#checkpoint h2", "step 3")
    page.press("d")
    for node in ("bind", "copy", "plan"):
        page.sees("dialog .row", node)
    assert page.text("dialog .row").count("loop") == 0
    page.find("dialog input").send_keys("copy")
    page.until(lambda: page.texts("dialog .total") == ["1 checkpoint"])
    page.press(Keys.ENTER)
    page.sees("#checkpoint .tools", "Compared with")


def test_a_dialog_closes_if_you_go_elsewhere(page: Browser, lived: str) -> None:
    page.open(lived, thread="finished")
    page.sees("#checkpoint h2", "step 3")
    page.press("d")
    page.sees("dialog h2", "Compare")
    page.go(thread="asking")
    page.sees("#thread h2", "asking")
    page.gone("dialog")


def test_writes_are_pending_only_as_long_as_no_checkpoint_follows(
    page: Browser, address: str, saver: SaverProtocol
) -> None:
    newest = saver.get_tuple({"configurable": {"thread_id": "thread 29"}})
    assert newest is not None
    saver.put_writes(newest.config, [("count", 1), ("count", 2)], task_id="a task")
    page.open(address, thread="thread 29", view="writes")
    page.sees("#thread .row .word", "2 pending")
    page.sees("#checkpoint .view", "Pending: the next step is not stored yet.")
    put(saver, "thread 29", 1, {"count": 3}, newest.config)
    page.sees("#thread .row", "2 writes")
    page.gone("#thread .row .word")
    page.click("#thread .row", "step 0")
    page.sees("#checkpoint .view", "The next step is stored")


def test_times_are_local_and_say_their_zone(page: Browser, lived: str) -> None:
    page.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Kathmandu"})
    try:
        page.open(lived, thread="finished")
        page.sees("#zone", ", UTC+5:45")
        for time in ("#threads time", "#thread .row time", "#checkpoint time"):
            title = page.find(time).get_attribute("title") or ""
            assert "GMT+05:45" in title
            assert title.endswith("Z)")
    finally:
        page.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


def test_the_list_follows_new_and_changed_threads(page: Browser, address: str, saver: SaverProtocol) -> None:
    page.open(address)
    page.until(lambda: titles(page)[:2] == ["thread 29", "thread 28"])
    config = put(saver, "thread 3", 1, {"count": 1})
    page.until(lambda: titles(page)[:2] == ["thread 3", "thread 29"])
    page.sees("[data-list=threads] .row", "2 cp")
    saver.put_writes(config, [("__error__", "it fell")], task_id="a task")
    page.sees("[data-list=threads] .row .word", "error")
    put(saver, "a new one", 0, {"count": 0})
    page.until(lambda: titles(page)[:3] == ["a new one", "thread 3", "thread 29"])
    page.sees("#threads .total", "31 threads")
    saver.delete_thread("a new one")
    page.until(lambda: titles(page)[:2] == ["thread 3", "thread 29"])
    page.sees("#threads .total", "30 threads")


def test_the_list_never_moves_a_row_that_you_point_at(page: Browser, address: str, saver: SaverProtocol) -> None:
    page.open(address)
    page.until(lambda: titles(page)[:1] == ["thread 29"])
    ActionChains(page.driver).move_to_element(page.find(".row-title", "thread 28")).perform()
    before = place(page, "thread 28")
    put(saver, "thread 27", 1, {"count": 1})
    page.sees("[data-list=threads] .row", "2 cp")  # it has changed in its place
    put(saver, "a new one", 0, {"count": 0})
    page.sees("#threads button.news", "Show 1 new thread")
    assert (titles(page)[:3], place(page, "thread 28")) == (["thread 29", "thread 28", "thread 27"], before)
    point(page, 1_300, 30)
    page.until(lambda: titles(page)[:3] == ["a new one", "thread 27", "thread 29"])
    page.gone("#threads button.news")


def test_the_list_stays_where_you_have_scrolled_until_you_ask(
    page: Browser, address: str, saver: SaverProtocol
) -> None:
    page.open(address)
    page.until(lambda: titles(page)[:1] == ["thread 29"])
    page.run("document.querySelector('[data-list=threads]').scrollTop = 600")
    page.sees(".row-title", "thread 18")
    before = place(page, "thread 18")
    put(saver, "a new one", 0, {"count": 0})
    page.sees("#threads button.news", "Show 1 new thread")
    assert place(page, "thread 18") == before
    page.click("#threads button.news")
    page.until(lambda: titles(page)[0] == "a new one")
    assert page.run("return document.querySelector('[data-list=threads]').scrollTop") == 0


def test_the_list_follows_its_filters_and_keeps_the_open_thread_marked(
    page: Browser, address: str, saver: SaverProtocol
) -> None:
    config = put(saver, "thread 5", 1, {"count": 1})
    page.open(address, thread="thread 5", status="idle")
    page.sees("#threads .row[aria-selected=true]", "thread 5")
    put(saver, "thread 6", 1, {"count": 1})
    page.until(lambda: titles(page)[:2] == ["thread 6", "thread 5"])
    page.sees("#threads .row[aria-selected=true]", "thread 5")
    saver.put_writes(config, [("__interrupt__", "sure?")], task_id="a task")
    page.until(lambda: "thread 5" not in titles(page))
    page.sees("#thread .wait", "waits for your answer: sure?")
    put(saver, "thread 5", 2, {"count": 2}, config)
    page.until(lambda: titles(page)[0] == "thread 5")
    page.gone("#thread .wait")


def test_a_tab_has_one_live_connection(page: Browser, address: str) -> None:
    page.open(address)
    page.until(lambda: titles(page)[:1] == ["thread 29"])
    page.run("""
        window.sources = [];
        const Source = window.EventSource;
        window.EventSource = class extends Source {
          constructor(url) { super(url); window.sources.push(this); }
        };
    """)
    for number in (28, 27):
        page.click("[data-list=threads] .row", f"thread {number}")
        page.sees("#thread h2", f"thread {number}")
        page.sees("#thread .live", "live")
    assert page.run("return window.sources.map((each) => each.readyState === 2)") == [True, False]
    page.resize(900, 700)  # too narrow for the list next to the thread: it is not followed
    page.until(lambda: page.run("return !window.sources.at(-1).url.includes('list=')"))


def test_a_live_stream_that_was_refused_is_opened_again(page: Browser, address: str, saver: SaverProtocol) -> None:
    """A proxy does so while the server is away, and the browser gives such a stream up."""
    page.open(address)
    page.until(lambda: titles(page)[:1] == ["thread 29"])
    page.run("""
        const Source = window.EventSource;
        window.EventSource = class extends Source {
          constructor(url) { super(window.isBack ? url : "/api/nothing"); }
        };
    """)
    page.click("[data-list=threads] .row", "thread 28")
    page.sees("#thread .live", "not connected")
    put(saver, "thread 28", 1, {"count": 1})  # while it is away
    page.run("window.isBack = true")
    page.sees("#thread .live", "live")
    page.sees("#thread .facts", "2 checkpoints")
    assert page.complaints()  # about the refusal


def test_a_thread_that_goes_on_is_moved_up_without_a_question_to_the_server(
    page: Browser, address: str, saver: SaverProtocol
) -> None:
    page.open(address)
    page.until(lambda: titles(page)[:1] == ["thread 29"])
    asked = len([each for each in page.requests() if "/api/threads" in each])
    for number in (7, 8, 9):
        put(saver, f"thread {number}", 1, {"count": 1})
        page.until(lambda number=number: titles(page)[:1] == [f"thread {number}"])  # type: ignore[misc]
    assert len([each for each in page.requests() if "/api/threads" in each]) == asked == 1
