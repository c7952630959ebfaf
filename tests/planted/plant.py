"""`make plant`: whether the suite notices mistakes. It plants one fault after the other, and runs the tests for it.

    make plant                                  # all, two at once
    make plant FAULTS='NAME NAME'               # some, by name or the beginning of a name
    make plant FAULTS='--list'                  # their names
    make plant FAULTS='--simulator 500'         # faults that no test finds are looked for in so many worlds

The faults go into copies of the tree. It fails if fewer than 95 of 100 are found, or if one cannot be tried.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from planted.fault import ROOT, Fault
from planted.faults import FAULTS

SHARE = 0.95
"""So many of the faults must be found."""

_PYTEST = ("-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider")
_WORLDS = "import sys; from simulator.playing import run; sys.exit(bool(run(range({seeds}), shrinks=False).failures))"
_TIMES = 3
"""Tests that do not end in this many times their usual time hang."""
_GRACE = 20
"""Seconds in which tests that are stopped may end their servers."""
_FAILED = re.compile(r"^(?:FAILED|ERROR) (?:tests/)?(\S.*?)(?: - (.*))?$", re.MULTILINE)
_WIDTH = 70


class Outcome(NamedTuple):
    """The outcome of tests."""

    passed: bool
    hung: bool
    by: str
    """The test that failed."""
    seconds: float
    output: str


class Verdict(NamedTuple):
    """Whether a fault was found."""

    fault: Fault
    outcome: Outcome | None
    """None if it could not be tried."""
    problem: str = ""

    @property
    def found(self) -> bool:
        """Whether tests or worlds failed because of it."""
        return self.outcome is not None and not self.outcome.passed

    def __str__(self) -> str:
        if self.outcome is None:
            return f"NOT TRIED          {self.fault.name}: {self.problem}"
        word = "found" if self.found else "NOT FOUND"
        by = self.outcome.by if self.found else self.fault.unseen
        return f"{word:<9} {self.outcome.seconds:6.1f} s  {self.fault.name:<{_WIDTH}}  {by}"


class Tree:
    """A copy of the repository with its changes, into which one fault at a time is planted."""

    def __init__(self, place: Path, number: int) -> None:
        self.root = place / str(number)
        self._compiled = place / f"compiled-{number}"
        self._planted = 0
        listed = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
        built = [str(path.relative_to(ROOT)) for path in ROOT.glob("libs/*/src/*/*.so")]
        for name in {*names, *built} - {""}:
            if (ROOT / name).is_file():  # one that was deleted is listed until the next commit
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.root / name)

    def run(self, fault: Fault, arguments: Sequence[str], limit: float) -> Outcome:
        """Run Python with these arguments, in the environment that the fault needs."""
        sources = [str(path) for path in sorted(self.root.glob("libs/*/src"))]
        environment = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
            "PYTHONPATH": os.pathsep.join([*sources, str(self.root / "tests")]),
            "PYTHONPYCACHEPREFIX": str(self._compiled),
            # Without the compiled part, the short form of the suite is a few tests only.
            **({"THREADMARK_PURE_PYTHON": "1", "THREADMARK_TESTS": "all"} if fault.pure else {}),
        }
        began = time.monotonic()
        output = self.root.parent / f"output-{self.root.name}"
        with output.open("w+") as file:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=self.root,
                env=environment,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            hung = not _ends(process, limit)
        text = output.read_text(errors="replace")
        failed = _FAILED.search(text)
        by = f"no end in {limit:.0f} s" if hung else failed[1] if failed else "worlds"
        return Outcome(not hung and process.returncode == 0, hung, by, time.monotonic() - began, text)

    def plant(self, fault: Fault) -> None:
        """Plant a fault. Raises ValueError if that cannot be done."""
        text = fault.planted((ROOT / fault.path).read_text())
        (self.root / fault.path).write_text(text)
        self._planted += 1
        # Compiled files are recognized by this time in seconds and the size, which two faults may share.
        os.utime(self.root / fault.path, (self._planted, self._planted))

    def mend(self, fault: Fault) -> None:
        """Take a fault out."""
        shutil.copy2(ROOT / fault.path, self.root / fault.path)


def _ends(process: subprocess.Popen[bytes], limit: float) -> bool:
    """Wait for a process. One that goes on after the limit is stopped, with all that it has started."""
    try:
        process.wait(limit)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)  # pytest ends its servers
        try:
            process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return False
    return True


class Trials:
    """Tries faults in some trees at once. A test that fails must pass without the fault; each is asked once."""

    def __init__(self, trees: Sequence[Tree], limit: float, worlds: int) -> None:
        self._trees: SimpleQueue[Tree] = SimpleQueue()
        for tree in trees:
            self._trees.put(tree)
        self._limit = limit
        self._worlds = worlds
        self._passing: dict[tuple[object, ...], Outcome] = {}

    def verdict(self, fault: Fault) -> Verdict:
        """Try one fault."""
        tree = self._trees.get()
        try:
            tree.plant(fault)
            try:
                arguments, outcome = self._with(tree, fault)
            finally:
                tree.mend(fault)
            before = outcome if outcome.passed else self._without(tree, fault, arguments)
            if not before.passed:
                return Verdict(fault, None, f"{before.by} fails without it as well\n{before.output[-3000:]}")
            if outcome.hung and before.seconds > self._limit / _TIMES:
                return Verdict(fault, None, f"its tests take {before.seconds:.0f} s without it: give a longer --limit")
            return Verdict(fault, outcome)
        except ValueError as error:
            return Verdict(fault, None, str(error))
        finally:
            self._trees.put(tree)

    def _with(self, tree: Tree, fault: Fault) -> tuple[tuple[str, ...], Outcome]:
        """Run the tests of a fault that is planted. Returns the arguments of the tests that failed, and the outcome."""
        arguments = (*_PYTEST, *fault.tests)
        outcome = tree.run(fault, arguments, self._limit)
        seeds = max(fault.seeds, self._worlds)
        if outcome.passed and seeds:
            arguments = "-c", _WORLDS.format(seeds=seeds)
            worlds = tree.run(fault, arguments, self._limit)
            outcome = worlds._replace(seconds=outcome.seconds + worlds.seconds)
        elif "::" in outcome.by:
            arguments = (*_PYTEST, f"tests/{outcome.by}")
        return arguments, outcome

    def _without(self, tree: Tree, fault: Fault, arguments: tuple[str, ...]) -> Outcome:
        key = *arguments, fault.pure
        if key not in self._passing:
            self._passing[key] = tree.run(fault, arguments, 3 * self._limit)
        return self._passing[key]


def chosen(names: Sequence[str]) -> list[Fault]:
    """Return the faults with these names, or names that begin so; all if there are no names."""
    unknown = [name for name in names if not any(fault.name.startswith(name) for fault in FAULTS)]
    if unknown:
        raise SystemExit(f"there is no fault {unknown[0]!r}: --list names all")
    return [fault for fault in FAULTS if not names or fault.name.startswith(tuple(names))]


def main() -> int:
    """Try the faults that the arguments name. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="the faults, by name or the beginning of a name; all by default")
    parser.add_argument("--list", action="store_true", help="print their names and the tests for each")
    parser.add_argument("--simulator", type=int, default=0, metavar="SEEDS", help="worlds for those not found by tests")
    parser.add_argument("--jobs", type=int, default=2, help="how many at once")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for the tests of one fault")
    parser.add_argument("--why", action="store_true", help="print the end of each output")
    options = parser.parse_args()
    faults = chosen(options.names)
    if options.list:
        for fault in faults:
            _say(f"{fault.name:<{_WIDTH}}  {' '.join(fault.tests)}")
        return 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="planted-") as folder, ThreadPoolExecutor(options.jobs) as pool:
        Path(folder).chmod(0o755)  # some tests run processes of another user
        trees = [Tree(Path(folder), number) for number in range(options.jobs)]
        trials = Trials(trees, options.limit, options.simulator)
        verdicts = []
        for running in as_completed([pool.submit(trials.verdict, fault) for fault in faults]):
            verdicts.append(running.result())
            _say(str(verdicts[-1]))
            if options.why and verdicts[-1].outcome is not None:
                _say(verdicts[-1].outcome.output[-2500:])
    return _ended(verdicts, time.monotonic() - began)


def _ended(verdicts: Sequence[Verdict], seconds: float) -> int:
    """Print the count. Returns the exit code."""
    found = sum(verdict.found for verdict in verdicts)
    explained = sum(bool(verdict.fault.unseen) and not verdict.found for verdict in verdicts)
    _say(f"{found} of {len(verdicts)} faults found in {seconds / 60:.0f} min, {explained} cannot be seen")
    is_tried = all(verdict.outcome is not None for verdict in verdicts)
    return int(not is_tried or found < SHARE * len(verdicts))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
