"""The page by keyboard, in dark and light, on the width of a phone, and read out."""

import re

import pytest
from selenium.webdriver.common.keys import Keys

from page.browser import Browser
from page.test_browser_reading import LAMP, LAMP_TITLE, entries, of_source
from threadmark import SaverProtocol


def test_all_is_reached_by_keys(page: Browser, reading: str) -> None:
    page.open(reading)
    page.sees("[data-list=threads] .row", LAMP_TITLE)
    page.press("/", "lamp arr")
    page.until(lambda: page.texts("[data-list=threads] .row-title") == [LAMP_TITLE])
    page.press(Keys.ESCAPE, "j", Keys.ENTER)
    page.sees("#checkpoint h2", "step 6")
    page.sees("[data-list=checkpoints] .row", "step 5")

    page.press("j", "j", Keys.ENTER)
    page.sees("#checkpoint h2", "step 4")
    page.press(Keys.ARROW_UP, Keys.ENTER)
    page.sees("#checkpoint h2", "step 5")
    page.press("[")
    page.sees("#checkpoint h2", "step 4")
    page.press("]")
    page.sees("#checkpoint h2", "step 5")
    for key, view in (("2", "changes"), ("3", "writes"), ("4", "about"), ("1", "state")):
        page.press(key)
        page.until(lambda view=view: page.hash.get("view") == view)  # type: ignore[misc]
        page.sees("#checkpoint .tabs [aria-current]", view.capitalize() if view != "about" else "Metadata")
    page.press("t")
    page.sees(".branches", "4 branches")
    page.press("t")
    page.gone(".branches")
    page.press("f")
    page.until(lambda: page.run("return document.activeElement.ariaLabel") == "Search this thread")
    page.press(Keys.ESCAPE, "g")
    page.sees("dialog h2", "Jump")
    page.press("10", Keys.ENTER)
    page.sees("#checkpoint h2", "step 10")
    page.press("d")
    page.sees("dialog h2", "Compare step 10 with")
    page.press(Keys.ESCAPE)
    page.gone("dialog")
    page.press("c")
    page.sees(".toast", "Config copied")
    page.press("?")
    page.sees("dialog.keys", "Search threads")
    page.press(Keys.ESCAPE)
    page.gone("dialog")
    page.press(Keys.ESCAPE)
    page.until(lambda: "at" not in page.hash)
    page.press(Keys.ESCAPE)
    page.until(lambda: "thread" not in page.hash)


def test_a_state_is_walked_through_and_unfolded_by_keys(page: Browser, reading: str) -> None:
    page.open(reading, thread=LAMP)
    page.find("[data-path='messages']")
    page.run("document.querySelector('[data-path=messages]').focus()")
    focused = "return document.activeElement.dataset.path"
    page.press("j", "j")
    page.until(lambda: page.run(focused) == "messages[1]")
    page.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    page.until(lambda: page.run(focused) == "messages[1].content")
    page.press(Keys.ARROW_LEFT)
    page.until(lambda: page.run(focused) == "messages[1]")
    page.press(Keys.ARROW_LEFT)
    page.gone("[data-path='messages[1].content']")
    page.press("b")
    page.sees(".since", "Set in this checkpoint")
    page.press("y")
    page.sees(".toast", "Path copied")
    assert page.clipboard() == "messages[1]"


def test_the_focus_is_seen_and_everything_has_a_role_and_a_name(page: Browser, reading: str) -> None:
    page.open(reading, thread=LAMP, list="tree")
    page.sees("#checkpoint h2", "step 6")
    page.find(".tree .row")
    unnamed = """
        return [...document.querySelectorAll("button, a, input, select, [role=listbox], [role=tree], section, nav")]
            .filter((each) => each.checkVisibility())
            .filter((each) => !(each.ariaLabel || each.textContent.trim()))
            .map((each) => each.outerHTML)
    """
    assert page.run(unnamed) == []
    places = []
    for _ in range(40):
        page.press(Keys.TAB)
        style = "const style = getComputedStyle(document.activeElement);"
        name = page.run(
            "const now = document.activeElement; return now.ariaLabel || now.dataset.path || now.textContent"
        )
        outline = page.run(f"{style} return [style.outlineStyle, style.outlineWidth]")
        is_row = page.run("return document.activeElement.matches('[role=listbox], [role=treeitem]')")
        if name.strip() and page.run("return document.activeElement !== document.body"):
            places.append(name)
            assert is_row or outline == ["solid", "2px"] or outline[0] == "auto", name
    assert {"Search threads", "Threads", "Tree of checkpoints, newest first", "Copy config", "messages"} <= set(places)
    page.run("document.querySelector('.tree').focus()")
    page.press("j")
    active = page.run("return document.querySelector('.tree').getAttribute('aria-activedescendant')")
    assert page.run("return getComputedStyle(document.getElementById(arguments[0])).outlineStyle", active) == "solid"


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_texts_are_readable_in_dark_and_light(page: Browser, reading: str, demo: SaverProtocol, colours: str) -> None:
    page.prefer(colours)
    page.open(reading, thread=LAMP, ns="", at=of_source(demo, "update").id, view="changes")
    page.sees(".change del", "ten")
    page.sees("[data-list=checkpoints] .row", "answer")
    ground = brightness(page, "body", "backgroundColor")
    assert (ground < 0.1) == (colours == "dark")
    for selector in ("h1", ".row-title", ".row-line.faint", ".row-line time", ".change del", ".change ins", ".word"):
        assert contrast(page, selector) >= 4.5, selector
    page.click("#checkpoint .tabs a", "State")
    for selector in ("[aria-expanded=true] .preview", ".preview[data-type=str]", ".type", ".node-row .size"):
        assert contrast(page, selector) >= 4.5, selector

    other = {"light": "dark", "dark": "light"}[colours]
    while page.run("return document.documentElement.dataset.theme") != other:
        page.click("#theme")
    assert (brightness(page, "body", "backgroundColor") < 0.1) == (other == "dark")
    page.driver.refresh()
    page.sees("#theme", "")
    assert (brightness(page, "body", "backgroundColor") < 0.1) == (other == "dark")  # it is remembered
    page.run("localStorage.clear()")


def test_a_phone_shows_one_thing_at_a_time_and_never_scrolls_sideways(
    page: Browser, reading: str, demo: SaverProtocol
) -> None:
    page.resize(360, 740)
    page.open(reading)
    fits(page, "[data-list=threads] .row")
    page.click("[data-list=threads] .row", LAMP_TITLE)
    fits(page, "[data-list=checkpoints] .row")
    assert not page.all("#threads, #checkpoint")
    page.click("#thread .tabs a", "Tree")
    fits(page, ".tree .row .lanes")
    page.click(".tree .row", "approve")
    fits(page, "#checkpoint .values .node")
    assert not page.all("#threads, #thread")
    update = of_source(demo, "update")
    page.go(thread=LAMP, ns="", at=update.id, view="changes")
    fits(page, ".change del")
    page.go(thread=LAMP, ns="", at=entries(demo)[2].id, view="writes")
    fits(page, ".task")
    page.go(thread=LAMP, ns="", at=update.id, view="about")
    fits(page, ".versions")
    page.press("?")
    fits(page, "dialog.keys")
    page.press(Keys.ESCAPE)
    page.click("#checkpoint .back")
    page.click("#thread .back")
    fits(page, "[data-list=threads] .row")


def fits(page: Browser, selector: str) -> None:
    """Wait for an element; nothing may then be wider than the page."""
    page.find(selector)
    page.until(lambda: page.run("return document.documentElement.scrollWidth <= innerWidth"), selector)
    wide = """
        return [...document.querySelectorAll("header, section, button, a, h2, select, input, dialog, .tabs")]
            .filter((each) => each.checkVisibility() && each.getBoundingClientRect().right > innerWidth + 0.5)
            .map((each) => each.outerHTML.slice(0, 120))
    """
    assert page.run(wide) == []


def contrast(page: Browser, selector: str) -> float:
    """Return how much a text stands out from its ground, as WCAG reckons."""
    text, ground = brightness(page, selector, "color"), brightness(page, selector, "backgroundColor")
    opacity = """
        let [each] = arguments, opacity = 1;
        for (; each; each = each.parentElement) opacity *= getComputedStyle(each).opacity;
        return opacity;
    """
    assert page.run(opacity, page.find(selector)) == 1, f"{selector} is paler than its colour"
    return (max(text, ground) + 0.05) / (min(text, ground) + 0.05)


def brightness(page: Browser, selector: str, name: str) -> float:
    """Return the relative luminance of an element's colour, or of the nearest ground that is painted."""
    page.find(selector)
    script = """
        const [selector, name] = arguments;
        let element = [...document.querySelectorAll(selector)].find((each) => each.checkVisibility());
        let colour = getComputedStyle(element)[name];
        while (/, 0\\)$/.test(colour) && element.parentElement) {
            element = element.parentElement;
            colour = getComputedStyle(element)[name];
        }
        return colour;
    """
    red, green, blue = map(int, re.findall(r"\d+", page.run(script, selector, name))[:3])
    parts = [each / 255 for each in (red, green, blue)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
