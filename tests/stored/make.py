"""Writes the database of the present format that later releases must go on reading.

    PYTHONPATH=tests python tests/stored/make.py

Run it once for each format, when that is released; the file of an older format is never written anew.
"""

from functools import partial
from pathlib import Path

from damage import fill
from threadmark.program import Program, Transaction
from threadmark.store import Store
from threadmark.thread_store import LeaseRow, ThreadRow, thread_row
from threadmark_sqlite import SqliteSaver
from threadmark_sqlite.migrations import CURRENT

ABOUT = thread_row(ThreadRow("one", 0, "ada", "Straße", '{"k":"v"}', 4_000_000_000_000_000))
"""What is set of a thread, since format 3."""


def _set(store: Store) -> Program[None]:
    yield from store.set_thread(ABOUT)
    yield from store.lock_lease("one")
    yield from store.set_lease("one", LeaseRow(0, 1, "worker"))


if __name__ == "__main__":
    path = Path(__file__).with_name(f"sqlite-{CURRENT}.sqlite")
    path.unlink(missing_ok=True)
    with SqliteSaver(path) as saver:
        fill(saver)
        saver._driver.run(Transaction(partial(_set, saver._context.store), writes=True))
