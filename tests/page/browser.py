"""A real Chromium, and the page's server on another thread."""

import asyncio
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from marks import require
from patience import PATIENCE
from ports import free_port
from threadmark import SaverProtocol
from threadmark_cli.page.app import create_app
from threadmark_cli.page.serving import PageServer

TOKEN = "let-me-in"  # noqa: S105 - of a server that only this test reaches

PROGRAMS = {
    "CHROMIUM": ("chromium", "chromium-browser", "google-chrome", "chrome"),
    "CHROMEDRIVER": ("chromedriver",),
}

SWITCHES = (
    "--headless=new",
    "--no-sandbox",  # which root, as in a container, would need
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)

_WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective));
"""
"""The script that each page runs before its own."""

_SHOWN = """
const [selector, text] = arguments;
const shown = [...document.querySelectorAll(selector)].filter((each) => {
  const seen = each.closest("select") ?? each; // an option is seen with its field
  return seen.checkVisibility({ visibilityProperty: true }) && (each.innerText ?? each.textContent).includes(text);
});
"""

_T = TypeVar("_T")


def program(variable: str) -> str:
    """Return the path of a program. `scripts/ensure-chromium` installs it."""
    require("browser")
    names = (os.environ[variable],) if variable in os.environ else PROGRAMS[variable]
    for name in names:
        if found := shutil.which(name):
            return found
    raise FileNotFoundError(f"{names[0]} is not installed: scripts/ensure-chromium says how to get it")


class Browser:
    """A window of Chromium, and the questions of tests, which always wait for the answer."""

    def __init__(self, driver: Chrome) -> None:
        self.driver = driver
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": _WATCH})
        permissions = ["clipboardReadWrite", "clipboardSanitizedWrite"]
        driver.execute_cdp_cmd("Browser.grantPermissions", {"permissions": permissions})

    def leave(self) -> None:
        """Leave the page that was open, which asks its server as long as it follows a thread."""
        self.driver.get("about:blank")

    def reset(self) -> None:
        """Leave the page that was open, and forget the browser's complaints."""
        self.leave()
        self.complaints()

    def complaints(self) -> list[str]:
        """Return the browser's complaints since the last call: errors, and breaches of the page's policy."""
        found: list[dict[str, str]] = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [each["message"] for each in found if each["level"] in ("SEVERE", "WARNING")]

    def requests(self) -> list[str]:
        """Return the addresses that the page has asked, its own among them."""
        script = "return [location.href, ...performance.getEntriesByType('resource').map((each) => each.name)]"
        found: list[str] = self.run(script)
        return found

    def fetched(self, path: str) -> int:
        """Return how many bytes the last answer to a path has had."""
        script = "return performance.getEntriesByType('resource').filter((each) => each.name.includes(arguments[0]))"
        return int(self.run(f"{script}.at(-1).decodedBodySize", path))

    def until(self, condition: Callable[[], _T], why: str = "") -> _T:
        """Wait until a condition is true, and return its result."""

        def holds(_: object) -> _T | bool:
            try:
                return condition()
            except StaleElementReferenceException:  # it was redrawn in between
                return False

        return WebDriverWait(self.driver, PATIENCE, poll_frequency=0.03).until(holds, why)  # type: ignore[return-value]

    def open(self, address: str, **route: str) -> None:
        """Open the page as a user does who has just got its address from the server."""
        self.leave()
        self.driver.get(f"{address}/?token={TOKEN}")
        if route:
            self.go(**route)
        self.until(lambda: self.text("#mode"), "the page says whether it can write")

    def address(self, base: str, **route: str) -> str:
        """Return the address of something in the page."""
        return f"{base}/#{urlencode(route)}"

    def go(self, **route: str) -> None:
        """Change the hash, as a link does."""
        self.run("location.hash = arguments[0]", urlencode(route))

    def all(self, selector: str, text: str = "") -> list[WebElement]:
        """Return the visible elements that have a text."""
        found: list[WebElement] = self.run(_SHOWN + "return shown", selector, text)
        return found

    def texts(self, selector: str) -> list[str]:
        """Return the texts of the visible elements."""
        found: list[str] = self.run(_SHOWN + "return shown.map((each) => each.innerText)", selector, "")
        return found

    def text(self, selector: str) -> str:
        """Return the text of the first of them, "" if there is none."""
        return "".join(self.texts(selector)[:1])

    def find(self, selector: str, text: str = "") -> WebElement:
        """Wait for a visible element that has a text, and return it."""
        return self.until(lambda: self.all(selector, text), f"{selector} with {text!r}")[0]

    def sees(self, selector: str, text: str) -> None:
        """Wait until an element has a text."""
        self.find(selector, text)

    def gone(self, selector: str) -> None:
        """Wait until no such element is visible."""
        self.until(lambda: not self.all(selector), f"{selector} goes")

    @property
    def hash(self) -> dict[str, str]:
        """The route in the hash of the address."""
        return dict(parse_qsl(urlsplit(self.driver.current_url).fragment, keep_blank_values=True))

    def clipboard(self) -> str:
        """Return the last copied text."""
        return str(self.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])"))

    def click(self, selector: str, text: str = "") -> None:
        """Click on an element, as soon as it is there."""

        def clicked() -> bool:
            self.find(selector, text).click()
            return True

        self.until(clicked, f"a click on {selector} with {text!r}")

    def press(self, *keys: str) -> None:
        """Press keys, wherever the focus is."""
        ActionChains(self.driver).send_keys(*keys).perform()

    def run(self, script: str, *arguments: Any) -> Any:
        """Run a script in the page."""
        return self.driver.execute_script(script, *arguments)

    def resize(self, width: int, height: int) -> None:
        """Give the page a size in CSS pixels, as a phone has it."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def prefer(self, colours: str) -> None:
        """Say which colours the system has: "dark" or "light"."""
        features = [{"name": "prefers-color-scheme", "value": colours}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


@contextmanager
def browser() -> Iterator[Browser]:
    """Start a Chromium that has no past, and end it."""
    with tempfile.TemporaryDirectory(prefix="threadmark-chromium-", ignore_cleanup_errors=True) as profile:
        options = ChromeOptions()
        options.binary_location = program("CHROMIUM")
        for switch in (*SWITCHES, f"--user-data-dir={profile}"):
            options.add_argument(switch)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = Chrome(options, Service(program("CHROMEDRIVER"), port=free_port()))
        try:
            found = Browser(driver)
            found.resize(1440, 900)
            found.prefer("light")
            yield found
        finally:
            driver.quit()


@contextmanager
def served(saver: SaverProtocol, *, write: bool = False, url: str = "sqlite:///demo.db") -> Iterator[str]:
    """Serve the page of a saver on a free port, on a thread, and return its address."""
    app = create_app(saver, token=TOKEN, write=write, url=url, every=0.05)
    started = threading.Event()
    server = PageServer(app, started.set)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])), name="page server")
        thread.start()
        try:
            assert started.wait(PATIENCE)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            thread.join()
