"""Messages of any kind: their kinds, the places of ids, their text; and a cache that fails."""

import logging
from collections import UserDict
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from threadmark import ConfigError, Conversations, MemorySaver
from threadmark.interfaces.messages import checked_messages, has_text

TALK = {"thread_id": "talk"}


@dataclass(frozen=True)
class Frozen:
    text: str
    id: str | None = None


class Named(NamedTuple):
    id: str | None
    content: str


class Slotted:
    __slots__ = ("content", "id")

    def __init__(self, content: str) -> None:
        self.content = content
        self.id = None


class Shared:
    """One for the whole process: a copy of it is itself."""

    id = None

    def __copy__(self) -> "Shared":
        return self


class SharedWords(dict[str, Any]):
    """The same, as a dictionary."""

    def __copy__(self) -> "SharedWords":
        return self


class ReadOnlyWords(dict[str, Any]):
    """Dictionaries without a writer."""

    def __setitem__(self, key: str, value: Any) -> None:
        raise TypeError("it is for reading")


class OnlyRead:
    @property
    def id(self) -> None:
        return None


def test_langchain_messages_come_back_and_are_found() -> None:
    given = [HumanMessage("Where is it?"), AIMessage([{"type": "text", "text": "In VIENNA"}], id="a")]
    with MemorySaver() as saver:
        talk = Conversations(saver)
        made, second = talk.put_messages(TALK, given)
        assert (given[0].id, second) == (None, "a")
        assert talk.get_messages(TALK) == [HumanMessage("Where is it?", id=made), given[1]]
        assert talk.get_messages(TALK, search="vienna") == [given[1]]
        assert talk.get_message(TALK, made).content == "Where is it?"


@pytest.mark.parametrize("given", [Frozen("x"), Slotted("x"), HumanMessage("x"), {"content": "x"}, {"id": None}])
def test_an_id_is_put_into_a_copy(given: Any) -> None:
    ((made, message),) = checked_messages([given])
    assert message is not given
    assert type(message) is type(given)
    found = message["id"] if isinstance(message, dict) else message.id
    assert found == made
    assert (given.get("id") if isinstance(given, dict) else given.id) is None


def test_a_message_that_has_an_id_is_taken_as_it_is() -> None:
    given = [Frozen("x", "1"), Named("2", "x"), {"id": "3"}, AIMessage("x", id="4")]
    assert checked_messages(iter(given)) == list(zip("1234", given, strict=True))


@pytest.mark.parametrize("given", [Named(None, "x"), OnlyRead(), object(), None, ["x"], 7, "text", UserDict(id="x")])
def test_what_is_no_message_or_takes_no_id_is_refused(given: Any) -> None:
    with pytest.raises(ConfigError, match=r"attribute `id`|cannot be given one"):
        checked_messages([given])


@pytest.mark.parametrize("given", [Shared(), Shared, SharedWords(text="x"), ReadOnlyWords(text="x")])
def test_what_takes_no_id_in_a_copy_is_refused_and_stays_as_it_is(given: Any) -> None:
    with pytest.raises(ConfigError, match="cannot be given one"):
        checked_messages([given])
    assert (given == {"text": "x"}) if isinstance(given, dict) else (given.id is None)


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ({"content": "a STRASSE b"}, True),
        ({"text": "die Straße"}, True),
        ({"content": ["x", "straße"]}, True),
        ({"content": [{"type": "text", "text": "Straße"}]}, True),
        ({"content": [{"type": "image", "url": "strasse"}, {"text": 7}, None]}, False),
        ({"role": "strasse", "content": 7}, False),
        (Frozen("strasse"), True),
        (Named("1", "STRASSE"), True),
        (AIMessage("", id="strasse"), False),
    ],
)
def test_the_text_of_a_message_is_its_content(message: Any, found: bool) -> None:  # noqa: FBT001 - a parameter of the test
    assert has_text(message, "straße".casefold()) is found


def test_a_text_is_looked_for_in_one_text_of_a_message_at_a_time() -> None:
    """The texts of a message, of which LangChain gives the same one twice, do not follow one another."""
    for message in (AIMessage("Hi"), {"content": ["Hi", "hi"]}, {"content": "Hi", "text": "hi"}):
        assert not has_text(message, "\n")
        assert not has_text(message, "hi\nhi")
        assert has_text(message, "")
    assert has_text(AIMessage([{"type": "text", "text": "Hi\nhi"}]), "hi\nhi")


def test_a_page_before_a_message_is_read_at_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A conversation that is deleted after the first transaction: it must not look as if it began with the message."""
    with MemorySaver() as saver:
        conversations, run = Conversations(saver), saver._driver.run
        conversations.put_messages(TALK, [{"id": str(number)} for number in range(3)])
        calls: list[Any] = []

        def deleting(transaction: Any) -> Any:
            calls.append(transaction)
            if len(calls) == 2:
                saver.delete_thread("talk")
            return run(transaction)

        monkeypatch.setattr(saver._driver, "run", deleting)
        assert conversations.get_messages(TALK, before="2") == [{"id": "0"}, {"id": "1"}]


class _Failing:
    def get(self, _: str) -> bytes | None:
        raise TimeoutError("x" * 200)

    def set(self, _: str, _data: bytes, _ttl: float) -> None:
        raise TimeoutError("secret text")

    delete = get

    async def aget(self, _: str) -> bytes | None:
        raise TimeoutError

    async def aset(self, _: str, _data: bytes, _ttl: float) -> None:
        raise TimeoutError

    adelete = aget


def test_a_shared_cache_that_fails_is_logged_once_and_without_values(caplog: pytest.LogCaptureFixture) -> None:
    with MemorySaver() as saver, caplog.at_level(logging.WARNING, "threadmark"):
        talk = Conversations(saver, cache=_Failing())  # type: ignore[arg-type]  # its parameters have other names
        for number in range(3):
            talk.put_state(TALK, {"text": f"secret text {number}" * 20})
            assert talk.get_state(TALK) == {"text": f"secret text {number}" * 20}
            talk._caches.shared._left_out_until = 0.0
    lines = [record.getMessage() for record in caplog.records if "shared cache" in record.getMessage()]
    assert len(lines) == 1
    assert "TimeoutError" in lines[0]
    assert "secret" not in caplog.text
