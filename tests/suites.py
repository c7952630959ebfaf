"""How the conformance suite is divided between backends and APIs, as all of it on each would take too long.

`MEMORY`, `POSTGRES` and the others say which cases run on which backend. The files named `test_conformance.py` make
their tests of them (`checks`, `random_use`). `make test` runs a sample of these cases for rows sealed in memory, pairs
and caches. With THREADMARK_TESTS=all nothing is divided nor sampled (length.py).
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from length import ALL, ONCE_EACH, times
from threadmark_conformance import (
    APIS,
    CASES,
    MEETINGS,
    OPERATIONS,
    WITHOUT_REPLICATION,
    Backend,
    Case,
    check_crash,
    check_interleavings,
    check_model,
    run_case,
)
from threadmark_conformance.interleaving import Meeting

Way = tuple[str, str]
"""A backend and an API."""

Backends = Mapping[str, Backend]
Test = Callable[..., None]

Share = tuple[str, ...]
"""The digits of some eighths of the cases, from 0 to 7, and topics of which all cases run."""

WHOLE = ("01234567",)
EIGHTHS = 8


class Suite(NamedTuple):
    """The cases and the other checks of each way."""

    shares: Mapping[Way, Share]
    dying: Sequence[Way]
    """The ways on which operations die. Under one API every second step is a death, under the other every other."""
    meeting: Sequence[Way]
    """The ways on which operations meet. Savers that remember the thread meet under one API, others under the other."""
    random: Sequence[Way] = ()
    """The ways on which savers are used at random."""
    cases: Sequence[Case] = CASES
    same_ways: bool = False
    """Whether the long form, too, takes these ways only, and not every backend with both APIs."""

    def behaviours(self) -> list[tuple[Case, str, str]]:
        """Return the cases of each way."""
        cases = frozenset(self.cases)
        return [
            (case, *way)
            for way, (eighths, *topics) in self.shares.items()
            for number, case in enumerate(CASES)
            if (str(number % EIGHTHS) in eighths or case.topic in topics) and case in cases
        ]

    def of_this_length(self, backends: Backends) -> "Suite":
        """Return the suite in the form that was asked for."""
        if not ALL:
            return self
        if self.same_ways:
            return self._replace(shares=dict.fromkeys(self.shares, WHOLE))
        ways = [(backend, api) for backend in backends for api in APIS]
        return self._replace(shares=dict.fromkeys(ways, WHOLE), dying=ways, meeting=ways, random=ways)


_IN_MEMORY_AND_FILES: list[Way] = [
    ("memory", "asyncio"),
    ("memory", "blocking"),
    ("memory sealed", "blocking"),
    ("sqlite file", "asyncio"),
    ("sqlite file", "blocking"),
]
MEMORY = Suite(
    shares={
        **dict.fromkeys(_IN_MEMORY_AND_FILES, WHOLE),
        ("sqlite memory", "asyncio"): ("0", "concurrency"),
        ("sqlite memory", "blocking"): ("4", "leases"),
    }
    if not ONCE_EACH
    else dict.fromkeys([("memory", "blocking"), ("memory sealed", "blocking"), ("sqlite file", "asyncio")], WHOLE),
    dying=_IN_MEMORY_AND_FILES,
    meeting=_IN_MEMORY_AND_FILES,
)
"""Sealed rows in memory differ from others in the rows, not in the API, so one API asks for them. A database in memory
has the statements of a file, and a driver of its own: it runs a share. test_model.py uses all of them at random.
"""

_BY_URL: list[Way] = [("url", "asyncio"), ("url", "blocking")]
POSTGRES = Suite(
    shares={
        ("url", "asyncio"): ("0", "concurrency"),
        ("url", "blocking"): ("7", "concurrency", "leases"),
        ("pool", "blocking"): ("034", "concurrency"),
        ("connection", "blocking"): ("156", "isolation"),
        ("pgbouncer", "blocking"): ("2", "concurrency"),
        ("connection", "asyncio"): ("123", "concurrency"),
        ("pgbouncer", "asyncio"): ("4", "concurrency"),
        ("asyncio pool", "asyncio"): ("5", "isolation"),
        ("partitioned", "asyncio"): ("6", "writing"),
        ("sealed", "asyncio"): ("7", "metadata", "writing_again"),
    },
    dying=_BY_URL,
    meeting=_BY_URL,
    random=_BY_URL,
    same_ways=True,
)
"""Every case runs once with each API, and the ways to a server divide the cases: each has some eighths of them, and all
cases of the topics in which it may differ. A saver on a URL has new sessions of the server for each case, which take
longer than most cases, so it has one eighth with each API, and pools and connections that are kept have more.
"""

CITUS = Suite(
    shares={("citus", "asyncio"): WHOLE, ("citus", "blocking"): WHOLE},
    dying=[("citus", "asyncio"), ("citus", "blocking")],
    meeting=[("citus", "asyncio"), ("citus", "blocking")],
    random=[("citus", "asyncio"), ("citus", "blocking")],
)

REDIS = Suite(
    shares={
        ("single", "asyncio"): ("01",),
        ("single", "blocking"): ("04", "concurrency"),
        ("sealed", "asyncio"): ("2", "metadata", "writing_again"),
        ("client", "blocking"): ("15", "concurrency"),
        ("asyncio client", "asyncio"): ("346", "concurrency"),
        ("cluster", "asyncio"): ("5", "concurrency", "leases"),
        ("cluster", "blocking"): ("26", "copying", "deleting", "forking", "isolation", "retention", "threads"),
        ("sentinel", "asyncio"): ("7", "isolation"),
        ("sentinel", "blocking"): ("37", "concurrency"),
    },
    dying=[("single", "asyncio"), ("single", "blocking"), ("cluster", "asyncio")],
    meeting=[("single", "blocking"), ("cluster", "asyncio")],
    random=[("single", "asyncio"), ("sentinel", "blocking"), ("cluster", "asyncio")],
)
"""As on Postgres; a cluster has all cases that touch several threads or slots, and few others, as it takes longer."""

PAIRS = Suite(
    shares={
        ("replicated memory", "asyncio"): WHOLE,
        ("replicated memory", "blocking"): ("0", "deleting", "leases"),
        ("replicated memory async", "asyncio"): ("2", "removing"),
        ("replicated sqlite", "blocking"): ("4", "concurrency", "deleting", "removing"),
        ("replicated sqlite async", "asyncio"): ("5",),
        ("replicated postgres redis", "asyncio"): ("1", "deleting", "removing"),
    },
    dying=[("replicated memory", "asyncio")],
    meeting=[("replicated memory", "blocking")],
    cases=WITHOUT_REPLICATION,
)
"""A pair adds the same to all databases, so most cases are of pairs in memory, with one API. Pairs of SQLite files,
and of Postgres and Redis, have the removals, and a share of the rest. The cases about a backend's replication data are
left out: those of a pair are its databases' own.
"""

CACHED = Suite(
    shares={
        ("memory", "blocking"): ("2", "concurrency", "deleting", "extracting", "listing", "reading", "removing"),
        ("memory", "asyncio"): ("3", "concurrency"),
        ("memory sealed", "asyncio"): ("1",),
        ("postgres and redis", "asyncio"): ("0", "deleting", "removing"),
    },
    dying=[("memory", "blocking")],
    meeting=[("memory", "asyncio")],
)
"""A cache adds the same in every place, so each way has a share, and two of them all removals."""


def checks(suite: Suite, backends: Backends) -> tuple[Test, Test, Test]:
    """Return the tests of behaviours, of deaths and of meetings."""
    suite = suite.of_this_length(backends)

    @pytest.mark.parametrize(("case", "backend", "api"), suite.behaviours(), ids=str)
    def test_behaviour(case: Case, backend: str, api: str, tmp_path: Path) -> None:
        run_case(case, backends[backend], api, tmp_path)

    @pytest.mark.parametrize(("backend", "api"), suite.dying)
    @pytest.mark.parametrize("operation", OPERATIONS)
    def test_death_at_any_step(operation: str, backend: str, api: str, tmp_path: Path) -> None:
        steps = {} if ALL else {"first": int(api == "blocking"), "stride": 2}
        check_crash(OPERATIONS[operation], backends[backend], api, tmp_path, **steps)

    @pytest.mark.parametrize(("backend", "api"), suite.meeting)
    @pytest.mark.parametrize("meeting", MEETINGS, ids=str)
    def test_meeting_in_any_order(meeting: Meeting, backend: str, api: str, tmp_path: Path) -> None:
        warm = (False, True) if ALL else (api == "blocking",)
        check_interleavings(meeting, backends[backend], api, tmp_path, warm=warm)

    return test_behaviour, test_death_at_any_step, test_meeting_in_any_order


def random_use(suite: Suite, backends: Backends) -> Test:
    """Return the test of random use."""

    @pytest.mark.parametrize(("backend", "api"), suite.of_this_length(backends).random)
    def test_random_use(backend: str, api: str) -> None:
        check_model(backends[backend], api, examples=times(4, at_length=8))

    return test_random_use
