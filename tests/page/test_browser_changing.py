"""Changes by the page, and changes by others that it follows, in a real Chromium."""

from collections.abc import Iterator

import pytest

import threadmark
from page.browser import Browser, served
from page.small import put
from threadmark import SaverProtocol

THREAD = "running"


@pytest.fixture
def saver() -> Iterator[SaverProtocol]:
    """Return a saver of one short thread."""
    with threadmark.open("memory:") as saver:
        config = put(saver, THREAD, 0, {"plan": "none", "count": 0})
        put(saver, THREAD, 1, {"plan": "go left", "count": 1}, config)
        yield saver


@pytest.fixture
def address(page: Browser, saver: SaverProtocol) -> Iterator[str]:
    """Return the address of a page that may write. The window leaves it before its server ends."""
    with served(saver, write=True) as address:
        yield address
        page.leave()


def test_a_checkpoint_is_forked_to_a_branch_with_other_values(
    page: Browser, address: str, saver: SaverProtocol
) -> None:
    page.open(address, thread=THREAD, list="tree")
    page.click("#checkpoint .tools a", "Parent")
    page.sees("#checkpoint h2", "step 0")
    page.click("[data-action=fork]")
    page.click("dialog button", "Change a channel")
    page.click("dialog [aria-label=Channel] option", "plan")
    page.find("dialog textarea").send_keys("go right")
    page.click("dialog button[type=submit]")
    page.sees("dialog .failure", "is not valid JSON")
    page.find("dialog textarea").clear()
    page.find("dialog textarea").send_keys('"go right"')
    page.click("dialog button[type=submit]")
    page.gone("dialog")
    page.sees("[data-path='plan'] .preview", '"go right"')
    page.sees(".branches", "2 branches")
    page.until(lambda: page.texts("#thread .row[aria-selected=true] .word") == ["newest"])
    newest = saver.get_tuple(named(THREAD))
    assert newest is not None
    assert newest.checkpoint["channel_values"]["plan"] == "go right"
    assert page.hash["at"] == newest.checkpoint["id"]


def test_the_new_value_of_a_fork_is_stored_as_it_was_written(page: Browser, address: str, saver: SaverProtocol) -> None:
    page.open(address, thread=THREAD)
    page.click("[data-action=fork]")
    page.click("dialog button", "Change a channel")
    page.click("dialog [aria-label=Channel] option", "count")
    page.find("dialog textarea").send_keys("[12345678901234567890, 1.0]")
    page.click("dialog button[type=submit]")
    page.gone("dialog")
    page.sees("[data-path='count'] .preview", "[12345678901234567890, 1.0]")
    newest = saver.get_tuple(named(THREAD))
    assert newest is not None
    assert repr(newest.checkpoint["channel_values"]["count"]) == "[12345678901234567890, 1.0]"


def test_a_checkpoint_is_forked_to_a_new_thread(page: Browser, address: str, saver: SaverProtocol) -> None:
    page.open(address, thread=THREAD)
    page.click("[data-action=fork]")
    page.find("dialog [aria-label='Id of the new thread']").send_keys(THREAD)
    page.click("dialog button[type=submit]")
    page.sees("dialog .failure", THREAD)  # it is taken: nothing was done
    page.find("dialog [aria-label='Id of the new thread']").clear()
    page.find("dialog [aria-label='Id of the new thread']").send_keys("a new one")
    page.click("dialog button[type=submit]")
    page.sees("#thread h2", "a new one")
    page.sees("[data-path='plan'] .preview", '"go left"')
    found = saver.get_tuple(named("a new one"))
    assert found is not None
    assert found.checkpoint["channel_values"]["plan"] == "go left"
    assert all("409" in said for said in page.complaints())


def test_an_old_checkpoint_is_restored(page: Browser, address: str, saver: SaverProtocol) -> None:
    page.open(address, thread=THREAD)
    page.click("#checkpoint .tools a", "Parent")
    page.sees("#checkpoint h2", "step 0")
    page.click("[data-action=restore]")
    page.sees("dialog", "stay as a branch")
    page.click("dialog button", "Cancel")
    page.gone("dialog")
    assert len(saver.history(THREAD).entries) == 2
    page.click("[data-action=restore]")
    page.click("dialog button[type=submit]")
    page.sees(".toast", "Restored")
    page.sees("[data-path='plan'] .preview", '"none"')
    newest = saver.get_tuple(named(THREAD))
    assert newest is not None
    assert newest.checkpoint["channel_values"] == {"plan": "none", "count": 0}


def test_a_running_thread_is_followed(page: Browser, address: str, saver: SaverProtocol) -> None:
    page.open(address, thread=THREAD)
    page.sees("#thread .live", "live")
    page.sees("#checkpoint h2", "step 1")
    newest = saver.get_tuple(named(THREAD))
    assert newest is not None
    saver.put_writes(newest.config, [("plan", "turn back"), ("__error__", "it fell")], task_id="a task")
    page.sees("[data-list=checkpoints] .row .word", "error")
    page.click("#checkpoint .tabs a", "Writes")
    page.sees(".task[data-kind=error]", "it fell")
    page.click("#checkpoint .tabs a", "State")
    config = newest.config
    for step in range(2, 5):
        config = put(saver, THREAD, step, {"plan": f"plan {step}", "count": step}, config)
        page.sees("#checkpoint h2", f"step {step}")
        page.sees("[data-path='plan'] .preview", f"plan {step}")
        page.until(lambda step=step: f"step {step}" in page.text("[data-list=checkpoints] .row"))  # type: ignore[misc]
    page.sees("#thread .facts", "5 checkpoints")

    page.click("[data-list=checkpoints] .row", "step 2")
    page.sees("[data-path='plan'] .preview", "plan 2")
    put(saver, THREAD, 5, {"plan": "plan 5", "count": 5}, config)
    page.until(lambda: "step 5" in page.text("[data-list=checkpoints] .row"))
    assert "step 2" in page.text("#checkpoint h2")  # who looks at one is not torn away
    assert "step 2" in page.text("#thread .row[aria-selected=true]")
    page.click("#checkpoint button", "Follow newest")
    page.sees("#checkpoint h2", "step 5")

    saver.prune([THREAD], keep_last=2)
    page.sees("#thread .facts", "2 checkpoints")
    page.until(lambda: len(page.all("[data-list=checkpoints] .row")) == 2)
    saver.delete_thread(THREAD)
    page.sees("#thread .live", "deleted")


def test_a_server_that_has_gone_is_said(page: Browser, saver: SaverProtocol) -> None:
    with served(saver) as address:
        page.open(address, thread=THREAD)
        page.sees("#thread .live", "live")
    page.sees("#thread .live", "not connected")
    page.go(thread=THREAD, ns="", at="1")
    page.sees("#checkpoint .failure", "threadmark serve does not answer")
    assert page.complaints()


def named(thread: str) -> dict[str, dict[str, str]]:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
