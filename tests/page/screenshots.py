"""The pictures of the page in the README.

python tests/page/screenshots.py [docs/images]
"""

import sys
import tempfile
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
LARGEST = 200_000
"""Bytes of a picture. A README is loaded by everybody."""

THREAD = "support-42"


def main(folder: Path) -> None:
    """Make the demo database, and take the pictures of it."""
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "examples")]
    browser = import_module("page.browser")
    threadmark = import_module("threadmark")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "demo.db"
        import_module("demo_database").make(path)
        with threadmark.open(f"sqlite:///{path}") as saver, browser.served(saver) as address, browser.browser() as page:
            update = next(entry.id for entry in saver.history(THREAD).entries if entry.source == "update")
            page.resize(1280, 720)
            page.prefer("dark")
            page.open(address, thread=THREAD, list="tree")
            page.sees(".tree .row", "interrupt")
            page.click("[data-path='messages[1]'] > .node-row")
            page.sees("[data-path='messages[1].content']", "content")
            take(page, folder / "page-tree.png")
            page.prefer("light")
            page.go(thread=THREAD, ns="", at=update, view="changes")
            page.sees(".change ins", "seven")
            page.sees("#thread .row[aria-selected=true]", "step 3")
            take(page, folder / "page-changes.png")


def take(page: "browser.Browser", path: Path) -> None:  # type: ignore[name-defined]  # noqa: F821
    """Take a picture, without the mouse over anything."""
    page.run("document.activeElement.blur()")
    page.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": 700, "y": 4})
    page.driver.save_screenshot(str(path))
    size = path.stat().st_size
    if size > LARGEST:
        raise SystemExit(f"{path} has {size:,} bytes: {LARGEST:,} are the most")
    sys.stdout.write(f"{path} ({size:,} bytes)\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images")
