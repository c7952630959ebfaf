"""How `search` looks for a text: whatever its case, and first in those bytes that are new."""

from time import monotonic
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import threadmark
from threadmark import ConfigError, Keyring, Saver
from threadmark.format.rope import deduplicate
from threadmark.format.rope.reuse import Source
from threadmark.format.stored import Stored
from threadmark.memory.driver import MemoryDriver
from threadmark.memory.store import MemoryStore
from threadmark.serde import Serde
from threadmark.travel import candidates, searching
from threadmark.travel.candidates import Hit, Pattern, fresh
from threadmark.types import ObjectView
from threadmark_conformance.engine import checkpoint


def hits(text: str, value: Any) -> list[tuple[str, ...]]:
    return [tuple(hit) for hit in Pattern(text).hits("c", value)]


@pytest.mark.parametrize(
    ("text", "value", "around"),
    [
        ("strasse", "Die Straße dort", ("Die ", "Straße", " dort")),
        ("STRASSE", "strasse", ("", "strasse", "")),
        ("s", "ß", ("", "ß", "")),
        ("ΣΑΣ", "ένας σας.", ("ένας ", "σας", ".")),
        ("i", "İ", ("", "İ", "")),
        ("a\ud800", "A\ud800", ("", "A\ud800", "")),
        ("x", "y" * 99 + "X" + "z" * 99, ("y" * 40, "X", "z" * 40)),
    ],
)
def test_the_case_does_not_matter_and_places_are_those_of_the_text(
    text: str, value: str, around: tuple[str, str, str]
) -> None:
    assert hits(text, value) == [("c", *around)]


def test_strings_are_found_wherever_they_are() -> None:
    value = {
        "a b": [0, ("x needle",)],
        1: "needle",
        "needle": None,
        "o": ObjectView("app:Needle", {"needle": 1, "text": "needle", "0": ["a needle"], "__cause__": "needle"}),
        "s": frozenset({"needle", "other"}),
        "bytes": b"needle",
    }
    assert [place for place, *_ in hits("NEEDLE", value)] == [
        *('c["a b"][1][0]', "c", 'c["needle"]', 'c["o"].text', 'c["o"][0]', 'c["o"]', 'c["s"]')
    ]


TEXTS = st.text(st.sampled_from("aAbBßs\u017f\u041a к é\n"), max_size=40)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    st.lists(TEXTS, max_size=6), st.lists(TEXTS, max_size=6), st.text(st.sampled_from("abAsкé"), min_size=1, max_size=4)
)
def test_bytes_that_are_new_never_hide_a_text(before: list[str], after: list[str], text: str) -> None:
    """Whatever the manifests are, a text of the new value that the old one has nowhere is not missed."""
    filler = "0123456789" * 30
    one, other = (Serde().dumps_typed([filler, *texts, filler])[1] for texts in (before, after))
    old = deduplicate(one, [])
    first = Stored("m", old.packed, b"d" * 16)
    new = deduplicate(other, [Source(one, old.packed)])
    second = Stored("m", new.packed, b"e" * 16)
    segments = {**old.fresh, **new.fresh}
    found = fresh(second, first)
    pieces = [segments[key][start:stop] for key, cut in found.slices.items() for _, start, stop in cut] + found.literals
    pattern = Pattern(text)
    is_new = any(True for _ in pattern.hits("", after)) and not any(True for _ in pattern.hits("", before))
    assert not is_new or found.is_joined or any(map(pattern.may_be_in, pieces))


LONG = f"{'some words that go on and on. ' * 40}needle{'more words that go on. ' * 40}"


@pytest.mark.parametrize(
    ("before", "after", "paths"),
    [
        (LONG.encode(), LONG, ["c"]),
        ({"raw": LONG.encode()}, {"raw": LONG}, ['c["raw"]']),
        ({"draft": LONG}, {"final": LONG}, ['c["final"]']),
        ({"draft": LONG}, {"drafts": [LONG]}, ['c["drafts"][0]']),
        (["first", [LONG]], [LONG], ["c[0]"]),
        ([LONG], [LONG, "new"], []),
        (["old"] * 15 + [LONG], ["old"] * 15 + [LONG, "new"], []),
    ],
)
def test_a_text_whose_bytes_stood_elsewhere_is_found_in_its_new_place(
    before: Any, after: Any, paths: list[str]
) -> None:
    """The new value reuses the bytes of the old one, with another meaning."""
    config: dict[str, Any] = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    with threadmark.open("memory:") as saver:
        for version, value in enumerate((before, after), 1):
            config = saver.put(config, checkpoint({"c": value}, {"c": version}), {}, {"c": version})
        newest = config["configurable"]["checkpoint_id"]
        found = saver.search("t", "NEEDLE").matches
        assert [match.path for match in found if match.id == newest] == paths


def test_a_character_that_an_edit_cut_in_two_hides_no_text() -> None:
    for text in ("привет", "ﬁnd", "refund"):
        pattern = Pattern(text.casefold())
        encoded = f"-{text}-".encode()
        for start in range(1, len(encoded) - 1):
            for stop in range(start + 1, len(encoded)):
                assert pattern.may_be_in(encoded[start:stop]), (text, start, stop)


def test_a_text_longer_than_a_piece_is_found_wherever_it_is_cut() -> None:
    text = "".join(f"{number:03}" for number in range(100))
    pattern, encoded = Pattern(text), f"{'-' * 99}{text}{'-' * 99}".encode()
    for at in range(100, 399):
        assert all(map(pattern.may_be_in, (encoded[:at], encoded[at:], encoded[at - 20 : at + 20])))
    assert not pattern.may_be_in(encoded[:99])
    assert not pattern.may_be_in(encoded[399:])


def test_a_very_long_text_does_not_hang() -> None:
    """Quadratic work would take hours; the deadline only tells that from any machine that is slow."""
    began = monotonic()
    for text in ("y" * 1_000_000, "z" * 1_000_000, "y" * 999_999 + "z"):
        assert Pattern(text).may_be_in(b"y" * 2_000_000) == ("y" in text)
    assert monotonic() - began < 60


def test_only_the_very_last_characters_have_no_case() -> None:
    assert not [number for number in range(0x1F000, 0x110000) if chr(number).casefold() != chr(number)]


def test_a_page_ends_when_much_was_read_and_the_next_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "_MOST_WORK", 3000)
    monkeypatch.setattr(candidates, "_ROOM", 1000)
    monkeypatch.setattr(candidates, "_AT_ONCE", 4)
    config: dict[str, Any] = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    with threadmark.open("memory:") as saver:
        for number in range(20):
            checkpoint: threadmark.Checkpoint = {
                "v": 4,
                "id": threadmark.new_id(),
                "ts": "",
                "channel_values": {"text": f"{number:03} {number * 7919 % 997:03} " * 100},
                "channel_versions": {"text": number},
                "versions_seen": {},
            }
            config = saver.put(config, checkpoint, {}, {"text": number})
        pages: list[threadmark.types.SearchPage] = []
        cursor = None
        while cursor or not pages:
            pages.append(saver.search("t", "004 ", cursor=cursor))
            cursor = pages[-1].cursor
    assert len(pages) > 3
    assert [match.path for page in pages for match in page.matches] == ["text"]


def test_what_was_stored_before_there_was_a_keyring_is_searched() -> None:
    driver, keys = MemoryDriver(), {"key": bytes(range(32))}

    def opened(**options: Any) -> Saver:
        return Saver(MemoryStore(), driver, **options)

    place: dict[str, Any] = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    sealing = {"keyring": Keyring(keys, "key", digest_secret=bytes(32))}
    for number in range(2):
        made = checkpoint({"text": f"{number} needle, and more text for a segment. " * 40}, {"text": number})
        place = opened().put(place, made, {}, {"text": number})
    opened(**sealing).reencrypt(plain="seal")
    page = opened(**sealing).search("t", "needle")
    assert ([match.path for match in page.matches], page.problems) == (["text"], [])
    made = checkpoint({"text": "sealed, and named with a secret. " * 40}, {"text": 3})
    opened(**sealing).put(place, made, {}, {"text": 3})
    other = opened(keyring=Keyring(keys, "key", digest_secret=bytes([1] * 32)))
    with pytest.raises(ConfigError, match="digest_secret is not the one"):
        other.search("t", "no such text")


def test_a_hit_is_what_a_match_ends_with() -> None:
    assert threadmark.types.Match._fields[3:] == Hit._fields


def test_a_checkpoint_that_follows_from_itself_ends_a_blame() -> None:
    config: dict[str, Any] = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    with threadmark.open("memory:") as saver:
        ids = [threadmark.new_id() for _ in range(2)]
        for made in (ids[0], ids[1], ids[0]):
            checkpoint: threadmark.Checkpoint = {
                "v": 4,
                "id": made,
                "ts": "",
                "channel_values": {"a": 1},
                "channel_versions": {"a": 1},
                "versions_seen": {},
            }
            config = saver.put(config, checkpoint, {}, {"a": 1})
        blame = saver.blame("t", "a")
        assert blame is not None
        assert blame.entry.id in ids
        assert [match.path for match in saver.search("t", "x").matches] == []
