"""The views of threads, of a thread and of a checkpoint, in a real Chromium, on the demo database."""

from typing import Any
from urllib.parse import urlsplit

from page.browser import Browser
from threadmark import SaverProtocol
from threadmark.types import HistoryEntry

LAMP = "support-42"
LAMP_TITLE = "Lamp arrived damaged"


def entries(saver: SaverProtocol, thread: str = LAMP) -> list[HistoryEntry]:
    return saver.history(thread, ns=None, limit=500).entries


def of_source(saver: SaverProtocol, source: str) -> HistoryEntry:
    return next(entry for entry in entries(saver) if entry.source == source)


def waiting(saver: SaverProtocol, channel: str, thread: str = LAMP) -> HistoryEntry:
    return next(entry for entry in entries(saver, thread) if any(write.channel == channel for write in entry.writes))


def titles(page: Browser) -> list[str]:
    return page.texts("[data-list=threads] .row-title")


def test_threads_are_listed_with_status_and_size_and_are_searched_filtered_and_sorted(
    page: Browser, reading: str
) -> None:
    page.open(reading)
    page.sees("[data-list=threads] .row", LAMP_TITLE)
    page.sees("#threads .total", "5 threads")
    assert "24 cp" in page.find("[data-list=threads] .row", LAMP_TITLE).text
    assert "kB" in page.find("[data-list=threads] .row", LAMP_TITLE).text

    page.find("[aria-label='Search threads']").send_keys("KETTLE")
    page.until(lambda: sorted(titles(page)) == ["Kettle damaged", "Kettle has not arrived"])
    assert page.hash == {"text": "KETTLE"}
    page.click("[aria-label=Status] option", "error")
    page.until(lambda: titles(page) == ["Kettle has not arrived"])
    page.find("[aria-label='Search threads']").send_keys(" that nobody has")
    page.sees("#threads .message", "No thread matches")
    page.click("#threads button", "Show all threads")
    page.until(lambda: len(titles(page)) == 5)

    page.click("[aria-label=Order] option[value='id']")
    page.until(lambda: titles(page)[0] == "Parcels in November")
    page.click("summary", "More filters")
    page.find("[aria-label=Owner]").send_keys("customer-23")
    page.until(lambda: titles(page) == ["Kettle has not arrived"])


def test_a_thread_is_a_timeline_and_a_tree_with_its_branches(page: Browser, reading: str) -> None:
    page.open(reading)
    page.click("[data-list=threads] .row", LAMP_TITLE)
    page.sees("#thread h2", LAMP_TITLE)
    page.sees("#thread .facts", "24 checkpoints")
    page.sees("[data-list=checkpoints] .row", "answer")
    first = page.find("[data-list=checkpoints] .row")
    assert "step 6" in first.text
    assert "messages" in first.text

    page.click("#thread .tabs a", "Tree")
    page.sees(".branches", "4 branches, 3 namespaces")
    assert len(page.all(".branches .chip")) == 4
    page.until(lambda: len({each.get_attribute("class") for each in page.all(".lanes circle")}) == 4)
    page.sees(".tree .row", "interrupt")  # the waiting row is known besides the tree
    page.click(".branches .chip", "from step 2")
    page.sees("#checkpoint h2", "step 10")
    assert page.hash["list"] == "tree"

    page.click("[aria-label=Namespace] option", "lookup")
    page.until(lambda: "lookup" not in page.text(".branches"))
    page.until(lambda: len(page.all(".tree .row")) == 4)


def test_a_state_is_typed_and_unfolded_where_one_looks(page: Browser, reading: str) -> None:
    page.open(reading, thread=LAMP)
    page.sees("#checkpoint h2", "step 6")
    message = "[data-path='messages[1]']"
    assert "AIMessage" in page.find(f"{message} > .node-row").text
    assert "by answer" in page.find("[data-path='messages'] > .node-row").text
    page.click(f"{message} > .node-row")
    page.sees(f"[data-path='messages[1].id'] {'.preview'}", "message-2")
    page.click("[data-path='messages[1].content'] > .node-row")
    page.sees("[data-path='messages[1].content'] .text", "We send you a new desk lamp today")
    page.sees("[data-path='order.price'] .type", "int")
    page.sees("[data-path='order.price'] .preview", "89")

    page.click("#checkpoint .tools a", "Parent")
    page.sees("#checkpoint h2", "step 5")
    page.sees("[data-path='order.price'] .preview", "89")
    page.click("#checkpoint .tools a", "Next")
    page.sees("#checkpoint h2", "step 6")
    page.sees("[data-path='messages[1].content'] .text", "We send you")  # an unfolded value stays so


def test_changes_stand_side_by_side_with_their_words_marked(page: Browser, reading: str, demo: SaverProtocol) -> None:
    update = of_source(demo, "update")
    page.open(reading, thread=LAMP, ns="", at=update.id, view="changes")
    page.sees(".change h3", "policy")
    page.until(lambda: page.texts(".change del") == ["ten", "50"])
    assert page.texts(".change ins") == ["seven", "100"]
    page.sees(".change[data-kind=added]", "notes[1]")
    assert "by approve" in page.find(".change[data-kind=added]").text
    page.sees(".equal", "messages")

    page.click("#checkpoint .scrolls .tools button", "Compare with")
    page.find("dialog input").send_keys("~0")
    page.until(lambda: len(page.all("dialog .row")) == 1)
    page.click("dialog .row")
    page.gone("dialog")
    newest = page.hash["against"]
    assert newest == entries(demo)[0].id
    page.sees(".change[data-kind=removed]", "messages[1]")
    page.sees("#checkpoint .tools", newest[-10:])
    page.driver.back()
    page.until(lambda: page.texts(".change del") == ["ten", "50"])


def test_pending_writes_errors_and_interrupts_name_their_node(page: Browser, reading: str, demo: SaverProtocol) -> None:
    failed = waiting(demo, "__error__", "support-43")
    page.open(reading, thread="support-43", ns="", at=failed.id, view="writes")
    page.sees(".task[data-kind=error] h3", "carrier")
    page.sees(".task[data-kind=error]", "TimeoutError")
    page.sees(".task[data-kind=error]", "the carrier did not answer within 30 seconds")
    page.sees("[data-list=threads] .word", "error")

    asked = waiting(demo, "__interrupt__")
    page.go(thread=LAMP, ns="", at=asked.id, view="writes")
    page.sees(".task[data-kind=interrupt] h3", "approve")
    page.sees(".task[data-kind=interrupt] .word", "Interrupt")
    page.sees(".task .word", "Answer")
    page.click("#checkpoint .tabs a", "Metadata")
    page.sees("#checkpoint .values", "loop")


def test_one_jumps_to_a_checkpoint_and_asks_since_when_a_value_is_so(
    page: Browser, reading: str, demo: SaverProtocol
) -> None:
    page.open(reading, thread=LAMP)
    page.sees("#checkpoint h2", "step 6")
    page.click("[data-path='policy'] > .node-row")
    page.click("[data-path='policy'] [data-tool=blame]")
    page.sees(".since", "Set in step 3")
    page.click(".since a")
    update = of_source(demo, "update")
    page.until(lambda: page.hash.get("at") == update.id)
    page.sees("#checkpoint h2", "step 3")
    page.sees(".found .text", "seven days")

    page.click("[data-action=jump]")
    page.find("dialog input").send_keys(update.id[:20])
    page.until(lambda: page.texts("dialog .total") == ["1 checkpoint"])
    page.find("dialog input").clear()
    page.find("dialog input").send_keys("10\n")
    page.sees("#checkpoint h2", "step 10")


def test_a_configuration_is_copied_as_code_that_finds_the_checkpoint(
    page: Browser, reading: str, demo: SaverProtocol
) -> None:
    update = of_source(demo, "update")
    page.open(reading, thread=LAMP, ns="", at=update.id)
    page.click("[data-action=config]")
    page.sees(".toast", "Config copied")
    names: dict[str, Any] = {}
    exec(page.clipboard(), names)  # noqa: S102 - the page's code must be code
    with_classes = demo.without_classes()
    found = with_classes.get_tuple(names["config"])
    assert found is not None
    assert found.checkpoint["id"] == update.id


def test_a_text_is_found_in_a_thread_and_opened_where_it_stands(page: Browser, reading: str) -> None:
    page.open(reading, thread=LAMP, list="search")
    page.find("[aria-label='Search this thread']").send_keys("PLEASE KEEP")
    page.sees("[data-list=matches] .row", "messages[1].content")
    assert page.find("[data-list=matches] mark").text == "please keep"
    page.click("[data-list=matches] .row", "messages[1].content")
    page.sees(".found .text", "please keep the old one")
    page.find("[aria-label='Search this thread']").send_keys(" nowhere")
    page.sees("#thread .message", "Not found")


def test_an_address_names_what_is_shown_and_the_back_button_goes_back(
    page: Browser, reading: str, demo: SaverProtocol
) -> None:
    update = of_source(demo, "update")
    page.open(reading, thread=LAMP, ns="", at=update.id, view="changes", list="tree")
    page.sees("#checkpoint h2", "step 3")
    page.sees(".change h3", "policy")
    page.sees("#thread .row[aria-selected=true]", "step 3")
    page.driver.refresh()
    page.sees(".change h3", "policy")
    page.sees("#thread .row[aria-selected=true]", "step 3")
    page.click("#checkpoint .tabs a", "State")
    page.sees("[data-path='policy']", "policy")
    page.click("#checkpoint .tools a", "Parent")
    page.sees("#checkpoint h2", "step 2")
    page.driver.back()
    page.sees("#checkpoint h2", "step 3")
    page.driver.back()
    page.sees(".change h3", "policy")
    page.driver.forward()
    page.sees("[data-path='policy']", "policy")


def test_what_is_not_there_is_said_and_what_only_reads_offers_no_change(page: Browser, reading: str) -> None:
    page.open(reading, thread="nobody")
    page.sees("#thread .failure", "there is no thread 'nobody'")
    page.go(thread=LAMP, ns="", at="no-such-id")
    page.sees("#checkpoint .failure", "Not found")
    page.click("#checkpoint .back" if page.all("#checkpoint .back") else "#thread .row")
    page.sees("#checkpoint h2", "step 6")
    assert page.text("#mode") == "read-only"
    assert page.all("[data-action=compare]")
    assert not page.all("[data-action=fork], [data-action=restore]")
    assert all("404" in said for said in page.complaints())


def test_the_page_asks_nobody_but_its_server(page: Browser, reading: str) -> None:
    page.open(reading, thread=LAMP, view="changes", list="tree")
    page.sees(".change", "messages[1]")
    asked = {urlsplit(url).netloc for url in page.requests()}
    assert asked == {urlsplit(reading).netloc}
    assert page.run("return window.violations") == []
