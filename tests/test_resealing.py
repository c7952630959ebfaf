"""`reencrypt(plain="seal")`: a database that was stored without a keyring is brought under one in place."""

import copy
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import backends
import postgres.backends
import redis_backend.backends
from threadmark import ConfigError, Conversations, CorruptDataError, Saver, Sessions, States
from threadmark.memory.driver import MemoryDriver
from threadmark.sealing import Keyring
from threadmark.types import SessionCheckpoint, SessionMetadata, ThreadInfo
from threadmark_conformance.crashes import DeathError, Mortal
from threadmark_conformance.engine import at, checkpoint
from threadmark_store import Cache, Store

KEYRING = Keyring({"key": bytes(range(32))}, "key", digest_secret=bytes(32))
LONG = "a needle in a text that is long enough for a segment. " * 20
Opener = Callable[..., Saver]
BACKENDS = {
    "memory": backends.memory,
    "sqlite file": backends.sqlite_file,
    "postgres": postgres.backends.from_url,
    "redis": redis_backend.backends.BACKENDS["single"],
}


@pytest.fixture(params=BACKENDS)
def open_saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    with BACKENDS[request.param](tmp_path) as opened, ExitStack() as savers:
        # The openers of the tests' own backends take every option of a saver; the protocol names the suite's one.
        with_options: Any = opened
        yield lambda **options: savers.enter_context(with_options(**options))


def fill(saver: Saver) -> None:
    """Store one of everything."""
    place: Any = at("graph")
    for number in range(3):
        place = saver.put(place, checkpoint({"text": f"{LONG}{number}"}), {"run_id": "r"}, {"text": number})
        saver.put_writes(place, [("text", f"{LONG}{number}"), ("n", number)], "task")
    saver.put_writes(place, [("__interrupt__", ["a question"])], "asking")
    saver.fork(place, {"text": "another way"})
    saver.put(at("graph", "inner:1"), checkpoint({"text": LONG}), {}, {"text": 1})
    saver.update_thread("graph", owner="ada", title="a title", metadata={"of": LONG})
    saver.update_thread("graph", expires_at=datetime.now(UTC) + timedelta(days=9))
    saver.put(at("plain"), checkpoint({"n": 1}), {}, {"n": 1})
    with saver.lease("held", holder="worker") as lease:
        saver.put(
            {"configurable": {"thread_id": "held", "lease_token": lease.token}}, checkpoint({"n": 2}), {}, {"n": 1}
        )
    States(saver).save("state", {"text": LONG}, {"about": "this state"})
    Sessions(saver).save(SessionCheckpoint(SessionMetadata(session_id="session", step=1), {"text": LONG}))
    talks = Conversations(saver)
    talk = {"thread_id": "talk", "user_id": "ada"}
    talks.put_messages(talk, [{"id": f"m{number}", "content": f"{LONG}{number}"} for number in range(3)])
    talks.put_state(talk, {"text": LONG})
    talks.delete_message(talk, "m1")


def everything(saver: Saver) -> Any:
    """All answers of a saver about the threads of `fill`."""

    def info(thread: ThreadInfo | None) -> ThreadInfo:
        assert thread is not None
        return thread._replace(size_bytes=0)  # sealed rows are longer

    names = ["graph", "held", "plain", "session", "state", "talk"]
    talk = {"thread_id": "talk", "user_id": "ada"}
    return (
        [list(saver.list({"configurable": {"thread_id": name}})) for name in names],
        [info(saver.get_thread(name)) for name in names],
        Conversations(saver).get_messages(talk),
        Conversations(saver).get_state(talk),
        States(saver).load("state"),
        Sessions(saver).load("session"),
        [len(saver.search(name, "needle").matches) for name in names],
        [info(thread) for thread in saver.list_threads(sort="id").threads],
    )


def test_a_database_with_one_of_everything_is_sealed_whole(open_saver: Opener) -> None:
    fill(open_saver())
    before = everything(open_saver())
    sealed = open_saver(keyring=KEYRING)
    with pytest.raises(CorruptDataError, match=r"reencrypt\(plain='seal'\)"):
        sealed.get_thread("graph")
    assert sealed.reencrypt(plain="seal") > 0
    assert sealed.reencrypt() == 0
    for reader in (sealed, open_saver(keyring=KEYRING)):
        assert everything(reader) == before
        assert reader.verify().problems == []
    assert open_saver().verify().problems  # nothing is left that opens without the key
    later = sealed.put(at("graph"), checkpoint({"text": LONG + "later"}), {}, {"text": 9})
    assert open_saver(keyring=KEYRING).get_tuple(later) is not None


def test_killed_at_any_step_it_goes_on_when_it_is_run_again(open_saver: Opener) -> None:
    fill(open_saver())
    before = everything(open_saver())
    deaths = 0
    for steps in range(1000):
        dying = copy.copy(open_saver(keyring=KEYRING))
        mortal = Mortal(dying._driver)
        dying._driver, mortal.steps_left = mortal, steps
        try:
            dying.reencrypt(plain="seal")
            break
        except DeathError:
            deaths += 1
    assert deaths > 20
    reader = open_saver(keyring=KEYRING)
    assert reader.reencrypt() == 0
    assert everything(reader) == before
    assert reader.verify().problems == []


def test_threads_that_stay_as_they_are_are_named_when_the_others_are_done(open_saver: Opener) -> None:
    fill(open_saver())
    gone = Keyring({"gone": bytes(32)}, "gone", digest_secret=bytes(32))
    for name in ("a lost one", "plainly lost"):
        open_saver(keyring=gone).put(at(name), checkpoint({"text": LONG}), {}, {"text": 1})
    sealed = open_saver(keyring=KEYRING)
    with pytest.raises(
        CorruptDataError, match=r"2 threads stay as they are: thread 'a lost one'.*; thread 'plainly lo"
    ):
        sealed.reencrypt(plain="seal")
    with pytest.raises(CorruptDataError, match="thread 'a lost one'"):
        sealed.reencrypt("a lost one", plain="seal")
    for name in ("graph", "plain", "session", "state", "talk"):
        assert sealed.verify(name).problems == []
        assert sealed.reencrypt(name) == 0


def test_an_item_that_stays_as_it_is_is_no_thread_and_each_place_is_named_once(open_saver: Opener) -> None:
    first = open_saver(keyring=KEYRING)
    first.put(at("thread"), checkpoint({"text": LONG}), {}, {"text": 1})
    Store(first).put(("ns",), "a", {"text": "a text"})
    texts = []
    for name in ("new", "key"):  # a keyring that lacks the key, and one that has another of its name
        other = Keyring({name: b"x" * 32}, name, digest_secret=bytes(32))
        with pytest.raises(CorruptDataError) as refused:
            open_saver(keyring=other).reencrypt()
        texts.append(str(refused.value))
    assert texts[0].startswith("1 thread and items stay as they are: thread 'thread': ")
    assert "; item 'a' of namespace 'ns': " in texts[0]
    assert texts[1].count("thread 'thread'") == 1


def test_metadata_that_is_to_be_sealed_from_now_on_is_sealed(open_saver: Opener) -> None:
    fill(open_saver(keyring=KEYRING, seal_metadata=False))
    before = everything(open_saver(keyring=KEYRING, seal_metadata=False))
    sealed = open_saver(keyring=KEYRING)
    assert sealed.reencrypt() > 0
    assert sealed.reencrypt() == 0
    for reader in (sealed, open_saver(keyring=KEYRING)):
        assert everything(reader) == before
        assert reader.verify().problems == []
    opened = open_saver(keyring=KEYRING, seal_metadata=False).verify().problems
    assert opened  # its metadata is no JSON without the key


def test_metadata_that_is_to_be_open_from_now_on_is_opened_and_needs_the_old_key_no_more(open_saver: Opener) -> None:
    fill(open_saver(keyring=KEYRING))
    before = everything(open_saver(keyring=KEYRING))
    opened = open_saver(keyring=_BOTH, seal_metadata=False)
    assert opened.reencrypt() > 0
    assert opened.reencrypt() == 0
    for reader in (opened, open_saver(keyring=_NEW, seal_metadata=False)):
        assert everything(reader) == before
        assert reader.verify().problems == []


_BOTH = Keyring({"key": bytes(range(32)), "new": bytes(32)}, "new", digest_secret=bytes(32))
_NEW = Keyring({"new": bytes(32)}, "new", digest_secret=bytes(32))
_CACHED: dict[tuple[tuple[str, ...], str], tuple[Any, int | None]] = {
    (("node",), f"{number}"): (f"result {number}", None) for number in range(100)
}


def _lengths(texts: list[str]) -> list[list[float]]:
    return [[float(len(text)), 1.0] for text in texts]


_INDEX: Any = {"dims": 2, "embed": _lengths, "fields": ["text"]}


def test_items_and_cached_values_are_sealed_again_and_need_the_old_key_no_more(open_saver: Opener) -> None:
    first = open_saver(keyring=KEYRING)
    Cache(first).set(_CACHED)
    Store(first, index=_INDEX).put(("ns",), "a", {"text": "a text"}, ttl=1000)
    Store(first.for_owner("ada")).put(("ns",), "hers", {"set": {1, 2}}, ttl=None)
    both = open_saver(keyring=_BOTH)
    Store(both).put(("ns",), "b", {"n": 1})
    before = Store(both).search(())
    assert both.reencrypt() == 2 + len(_CACHED)
    assert both.reencrypt() == 0
    last = open_saver(keyring=_NEW)
    assert Cache(last).get(list(_CACHED)) == {key: value for key, (value, _) in _CACHED.items()}
    assert Store(last).search(()) == before
    assert [item.key for item in Store(last, index=_INDEX).search((), query="a text") if item.score] == ["a"]
    assert Store(last.for_owner("ada")).get(("ns",), "hers") is not None
    report = Store(last).verify(decode=True)
    assert (report.problems, report.unreadable, report.items, report.cached) == ([], [], 3, len(_CACHED))


def test_plain_items_are_sealed_if_you_ask_for_it_and_plain_cached_values_go(open_saver: Opener) -> None:
    plain = open_saver()
    has_words = "Redis" not in repr(plain)
    Store(plain, text_search=has_words).put(("ns",), "a", {"text": "a secret"})
    Cache(plain).set(_CACHED)
    sealed = open_saver(keyring=KEYRING)
    with pytest.raises(CorruptDataError, match="'a' of namespace 'ns': it is not sealed"):
        sealed.reencrypt()
    assert sealed.reencrypt(plain="seal") == 1 + len(_CACHED)
    assert sealed.reencrypt() == 0
    assert Store(sealed).search(())[0].value == {"text": "a secret"}
    assert Cache(sealed).size() == (0, 0)
    assert Store(sealed).stats().words == 0
    with pytest.raises(ConfigError, match="is sealed"):
        Store(open_saver()).get(("ns",), "a")


@pytest.mark.parametrize("keyring", [None, _NEW], ids=["none", "another"])
def test_keys_that_do_not_fit_the_items_are_refused_before_the_first_put(
    open_saver: Opener, keyring: Keyring | None
) -> None:
    right = Store(open_saver(keyring=KEYRING))
    right.put(("ns",), "a", {"text": "a secret"})
    wrong = Store(open_saver(keyring=keyring) if keyring else open_saver())
    for _ in range(2):
        with pytest.raises(ConfigError, match="is sealed"):
            wrong.put(("ns",), "b", {"text": "another secret"})
    assert [item.key for item in right.search(())] == ["a"]
    Store(open_saver(keyring=_BOTH)).put(("ns",), "b", {"text": "another secret"})


@pytest.mark.parametrize("keyring", [None, _NEW], ids=["none", "another"])
def test_items_and_cached_values_come_into_no_database_that_is_sealed_with_other_keys(
    open_saver: Opener, keyring: Keyring | None
) -> None:
    right = open_saver(keyring=KEYRING)
    if keyring is None and isinstance(right._driver, MemoryDriver):
        return  # no program opens the memory of another one, so a saver without a keyring does not look at it
    right.put(at("thread"), checkpoint({"n": 1}), {}, {"n": 1})
    wrong = open_saver(keyring=keyring) if keyring else open_saver()
    for _ in range(2):
        with pytest.raises(ConfigError, match="is sealed"):
            Store(wrong).put(("ns",), "a", {"text": "a secret"})
        with pytest.raises(ConfigError, match="is sealed"):
            Cache(wrong).set(_CACHED)
    assert Store(right).search(()) == []
    assert Cache(right).size() == (0, 0)
    Cache(right).set(_CACHED)
    Store(right).put(("ns",), "a", {"text": "a secret"})
