"""Writes the database of the present format that later releases must go on reading.

    PYTHONPATH=tests python tests/stored/make.py

Run it once for each format, when that is released; the file of an older format is never written anew.
"""

from pathlib import Path

from damage import fill
from threadmark_sqlite import SqliteSaver
from threadmark_sqlite.migrations import CURRENT

if __name__ == "__main__":
    path = Path(__file__).with_name(f"sqlite-{CURRENT}.sqlite")
    path.unlink(missing_ok=True)
    with SqliteSaver(path) as saver:
        fill(saver)
