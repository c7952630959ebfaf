"""The page's first paint: on a database of 10,000 threads, and on a thread of 5,000 checkpoints with a state of 10 MB.

    python benchmarks/first_paint.py [--rounds 5]

Each round opens the page again in a Chromium (scripts/ensure-chromium) and reads its own entries: when it first
painted something, and when the rows of the listing, the timeline or the tree, the state or the change were there. The
database is a SQLite file. Medians, in milliseconds since the address was opened.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import threadmark
from threadmark import SaverProtocol

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from page.browser import Browser, browser, served
from page.large import CHECKPOINTS, THREAD, put_steps

THREADS = 10_000

SHOWN = """
const [selector, done] = arguments;
const look = () => {
  const found = document.querySelector(selector);
  if (found && found.textContent.trim()) requestAnimationFrame(() => setTimeout(() => done(performance.now())));
  else requestAnimationFrame(look);
};
look();
"""
"""Waits for something, and for the frame in which it is painted."""

PAINTED = "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"


class View(NamedTuple):
    """The address to open, and the elements that must be there."""

    name: str
    route: dict[str, str]
    rows: str


VIEWS = (
    View(f"{THREADS:,} threads", {}, "[data-list=threads] .row-title"),
    View(f"{CHECKPOINTS:,} checkpoints, timeline", {"thread": THREAD}, "[data-list=checkpoints] .row-title"),
    View(f"{CHECKPOINTS:,} checkpoints, tree", {"thread": THREAD, "list": "tree"}, ".tree .row-title"),
    View("a state of 10 MB", {"thread": THREAD}, "[data-path=documents] .preview"),
    View("its change against its parent", {"thread": THREAD, "view": "changes"}, ".change h3"),
)


def main() -> None:
    """Make the database, open the page, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    print("| opened | first paint | shown |")
    print("|---|---:|---:|")
    with database() as saver, served(saver) as address, browser() as page:
        page.open(address)
        for view in VIEWS:
            times = [opened(page, address, view) for _ in range(rounds)]
            painted, shown = (statistics.median(each) for each in zip(*times, strict=True))
            print(f"| {view.name} | {painted:,.0f} | {shown:,.0f} |")


def opened(page: Browser, address: str, view: View) -> tuple[float, float]:
    """Open a view again, and return when something was painted, and when its rows were."""
    page.reset()
    page.driver.get(page.address(address, **view.route))
    shown = float(page.driver.execute_async_script(SHOWN, view.rows))
    return float(page.until(lambda: page.run(PAINTED))), shown


@contextmanager
def database() -> Iterator[SaverProtocol]:
    """Fill a SQLite file."""
    with tempfile.TemporaryDirectory() as folder, threadmark.open(f"sqlite:///{folder}/page.db") as saver:
        for number in range(THREADS - 1):
            saver.create_thread(f"thread-{number:05}", title=f"Thread number {number}")
        put_steps(saver, THREAD, CHECKPOINTS)
        yield saver


if __name__ == "__main__":
    main()
