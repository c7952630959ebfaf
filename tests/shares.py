"""The division of the suite between the ways to a server, as all of it on each would take too long.

With THREADMARK_TESTS=all nothing is divided (length.py).
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from length import ALL
from threadmark_conformance import APIS, CASES, Case

Way = tuple[str, str]
"""A backend and an API."""

Behaviour = tuple[Case, str, str]
"""A case, and the ways on which it runs."""

EIGHTHS = 8


class Share(NamedTuple):
    """Some eighths of the cases, by their numbers, and all cases of some topics."""

    eighths: frozenset[int]
    topics: frozenset[str]


def share(eighths: str, *topics: str) -> Share:
    """Return the share with the eighths of these digits, from 0 to 7, and these topics."""
    return Share(frozenset(map(int, eighths)), frozenset(topics))


def behaviours(whole: Iterable[Way], shares: Mapping[Way, Share]) -> list[Behaviour]:
    """Return the cases of each way: some ways have every case, others a share."""
    found = [(case, *way) for way in whole for case in CASES]
    for way, (eighths, topics) in shares.items():
        for number, case in enumerate(CASES):
            if number % EIGHTHS in eighths or case.topic in topics:
                found.append((case, *way))
    return found


def assert_nothing_is_left_out(chosen: Iterable[Behaviour]) -> None:
    """Fail unless every case runs with both APIs, whichever way."""
    assert {(case, api) for case, _, api in chosen} == {(case, api) for case in CASES for api in APIS}


def steps(api: str) -> dict[str, int]:
    """Return at which steps an operation dies under this API: every second one, and each under one of the two."""
    return {} if ALL else {"first": int(api == "blocking"), "stride": 2}


def warm(api: str) -> tuple[bool, ...]:
    """Return whether savers that meet under this API remember the thread: under one of the two they do."""
    return (False, True) if ALL else (api == "blocking",)
