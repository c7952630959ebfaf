#!/usr/bin/env python3
"""Tries an installation of Threadmark, not the checkout: run it with the Python of an environment, in an empty folder.

    python -I scripts/smoke.py --expect compiled              # the installed packages store and read, in compiled code
    python -I scripts/smoke.py --expect Python --demo demo.db # the same in Python, then the command and the page

It uses core and SQLite. If `threadmark-conformance` is installed, it runs a sample of the behaviour suite; with a
database of `examples/demo_database.py` it runs the command and asks the page. Every warning is an error.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from http.cookiejar import CookieJar
from importlib.util import find_spec
from pathlib import Path
from typing import Any

EVERY = 20
"""One of so many cases of the behaviour suite is run, on each backend with each API."""
TIMEOUT = 120


def main() -> None:
    """Try the installed packages, and print a line for each part."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--expect", choices=["compiled", "Python"], required=True)
    arguments.add_argument("--demo", type=Path)
    options = arguments.parse_args()
    warnings.simplefilter("error")
    parts: list[Callable[[], str]] = [lambda: _implementation(options.expect), _values]
    if find_spec("threadmark_conformance"):
        parts.append(_behaviour)
    if options.demo:
        parts += [lambda: _command(options.demo, options.expect), lambda: _page(options.demo)]
    for part in parts:
        print(part(), flush=True)


def _implementation(expected: str) -> str:
    import threadmark
    from threadmark.runtime.compiled import implementation

    place = Path(str(threadmark.__file__))
    _require(Path(sys.prefix) in place.parents, f"threadmark comes from {place}, not from this environment")
    _require(implementation().startswith(expected), f"it runs {implementation()}, not {expected}")
    return f"threadmark {threadmark.__version__}, {implementation()}"


def _values() -> str:
    import threadmark

    values = {
        "text": "a lamp " * 2000,
        "number": 2**70,
        "when": datetime(2026, 11, 20, tzinfo=UTC),
        "price": Decimal("9.90"),
        "set": {1, 2},
    }
    with tempfile.TemporaryDirectory() as folder:
        for url in ("memory:", f"sqlite:///{folder}/agents.db"):
            with threadmark.open(url) as saver:
                states = threadmark.States(saver)
                for number in range(20):
                    states.save("one", {**values, "step": number})
                _require(states.load("one") == {**values, "step": 19}, f"{url} gives back other values")
                _require(not saver.verify().problems, f"{url} is damaged")
    return f"{len(values)} kinds of values"


def _behaviour() -> str:
    from threadmark import Saver
    from threadmark.memory.driver import MemoryDriver
    from threadmark.memory.store import MemoryStore
    from threadmark_conformance import APIS, CASES, run_case
    from threadmark_sqlite import SqliteSaver

    @contextmanager
    def memory(_: Path) -> Iterator[Any]:
        driver = MemoryDriver()
        yield lambda **options: Saver(MemoryStore(), driver, **options)

    @contextmanager
    def sqlite(folder: Path) -> Iterator[Any]:
        yield lambda **options: SqliteSaver(folder / "agents.db", **options)

    sample = CASES[::EVERY]
    for case in sample:
        for api in APIS:
            for backend in (memory, sqlite):
                with tempfile.TemporaryDirectory() as folder:
                    run_case(case, backend, api, Path(folder))
    return f"{len(sample)} cases of the suite, on two backends with both APIs"


def _command(database: Path, expected: str) -> str:
    said = {
        ("doctor", str(database)): f"implementation: {expected}",
        ("threads", str(database)): "support-42",
        ("log", str(database), "support-42", "--graph", "--ns", "", "--limit", "5"): "(newest)",
        ("verify", str(database)): "",
    }
    for arguments, text in said.items():
        command = [_program(), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT)
        _require(done.returncode == 0, f"threadmark {' '.join(arguments)} failed: {done.stdout}{done.stderr}")
        _require(text in done.stdout, f"threadmark {' '.join(arguments)} does not say {text!r}: {done.stdout}")
    return f"{len(said)} commands"


def _page(database: Path) -> str:
    command = [_program(), "serve", "--no-open", "--json", str(database)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = json.loads(server.stdout.readline() if server.stdout else "")["url"]
            browser = urllib.request.build_opener(
                urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor(CookieJar())
            )
            base = address.partition("?")[0]
            with browser.open(address, timeout=TIMEOUT) as page:
                _require(b"<title>" in page.read(), "the page has no title")
            for path in ("static/main.js", "api/threads"):
                with browser.open(base + path, timeout=TIMEOUT) as answer:
                    _require(bool(answer.read()), f"{path} of the page is empty")
        finally:
            server.terminate()
    return "the page"


def _program() -> str:
    return str(Path(sys.executable).parent / ("threadmark.exe" if os.name == "nt" else "threadmark"))


def _require(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - a condition, not a switch
    if not holds:
        sys.exit(f"smoke: {otherwise}")


if __name__ == "__main__":
    main()
