"""If psycopg finds no libpq, every way to the backend raises an error that names the package to install."""

import subprocess
import sys

import pytest

# psycopg looks for its compiled parts, then for the system's libpq.
HIDDEN = """
import ctypes.util
import sys

sys.modules["psycopg_binary"] = sys.modules["psycopg_c"] = None
ctypes.util.find_library = lambda name: None
try:
    {ask}
except ImportError as error:
    print(type(error).__name__, error)
"""

WAYS = {
    "package": "import threadmark_postgres",
    "url": "import threadmark.urls; from importlib.metadata import EntryPoint as E; "
    "threadmark.urls._loaded(E('postgresql', 'threadmark_postgres.saver:open_url', 'threadmark.savers'))",
    "langgraph": "import threadmark_langgraph; threadmark_langgraph.PostgresSaver('postgresql://nobody@nowhere/none')",
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_psycopg_without_libpq_gets_a_hint_of_the_extra(way: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HIDDEN.format(ask=way)], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.startswith(
        "MissingDependencyError psycopg cannot be used (libpq library not found): pip install "
    )
    assert "'threadmark-postgres[binary]'" in done.stdout
