"""Each planted fault can be planted: its old text stands once in its file, the new one is of the language"""

from pathlib import Path

import pytest

from planted.fault import ROOT, Fault, expect_readable
from planted.faults import FAULTS

UNSEEN = 3
"""So many faults at most may be ones that nothing can find."""


def _problem(fault: Fault) -> str | None:
    try:
        fault.planted((ROOT / fault.path).read_text())
    except (OSError, ValueError) as error:
        return str(error)
    return None


def test_each_fault_can_be_planted() -> None:
    assert [problem for fault in FAULTS if (problem := _problem(fault)) is not None] == []


def test_the_tests_for_each_fault_are_there() -> None:
    named = {word.partition("::")[0] for fault in FAULTS for word in fault.tests if word.startswith("tests/")}
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_names_tell_faults_apart() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert sum(bool(fault.unseen) for fault in FAULTS) <= UNSEEN


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("absent", "", "stands 0 times"),
        ("a", "b", "stands 2 times"),
        ("= 1", "= 1", "changes nothing"),
        ("= 1", "= (", "was never closed"),
    ],
)
def test_a_fault_that_cannot_be_planted_is_noticed(old: str, new: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Fault("one", "some.py", old, new, ()).planted("a = 1\na += 2\n")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("some.sql", "BEGIN IF x THEN y; END"),
        ("some.sql", "SELECT (1"),
        ("some.sql", "SELECT 'it"),
        ("some.lua", "if x then y() end end"),
        ("some.lua", "local x = {1)"),
    ],
)
def test_text_that_is_not_of_its_language_is_noticed(name: str, text: str) -> None:
    with pytest.raises(ValueError, match=name):
        expect_readable(Path(name), text)


def test_texts_and_comments_are_no_code() -> None:
    expect_readable(Path("some.sql"), "IF x = 'it''s (' THEN -- end of a caller's (\n y; END IF;")
    expect_readable(Path("some.lua"), "if x == '\\255' then -- it's (\n y() end")
