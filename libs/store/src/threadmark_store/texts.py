"""The texts of a value that a search is about, chosen by paths as LangGraph has them."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from threadmark.backends import ConfigError, Program, short_repr
from threadmark_store.shapes import ItemKey, ItemRow
from threadmark_store.words.contract import HEAD, WordRow, Words
from threadmark_store.words.ranking import words_in

_CHOSEN = "="
"""The second character of a head whose put chose the fields."""

WHOLE = "$"
"""The path of the whole value."""

Fields = Sequence[str] | bool | None
"""The fields that a put chose: False for none, None for those of the store."""


class Lacking(NamedTuple):
    """An item whose vectors or words are to be computed."""

    key: ItemKey
    value: Mapping[str, Any]
    fields: Fields


def checked_fields(fields: object) -> list[str]:
    """Return a list of paths. Raises ConfigError if it is none."""
    if isinstance(fields, (list, tuple)) and all(isinstance(field, str) for field in fields):
        return list(fields)
    raise ConfigError(
        "the fields of a search must be a list of paths such as ['text', 'messages[*].content'], not "
        f"{short_repr(fields)}"
    )


def texts_of(value: Mapping[str, Any], fields: Fields, usual: Sequence[str]) -> Iterator[tuple[str, int, str]]:
    """Yield each text of a value that counts, with its field and its number there."""
    for field in dict.fromkeys(usual if fields is None else checked_fields(fields or [])):
        for number, text in enumerate(_texts_at(value, field)):
            yield field, number, text


def all_texts(value: Any) -> Iterator[str]:
    """Yield the texts of a value and of everything in it, but not its keys."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, Mapping):
            waiting += each.values()
        elif isinstance(each, (list, tuple, set, frozenset)):
            waiting += each


class TextIndex:
    """A store's `text_search`: the fields whose words are stored, or all texts of a value."""

    def __init__(self, fields: object, *, is_sealed: bool) -> None:
        if is_sealed:
            raise ConfigError(
                "a store with a keyring has no search by text: its words would have to be stored as they are. Give it "
                "an `index`, whose vectors are sealed"
            )
        self._fields = None if fields is True else checked_fields(fields)
        self.head = HEAD if self._fields is None else HEAD + json.dumps(self._fields)
        """The head of an item whose put left the fields to the store."""

    def words(self, value: Mapping[str, Any], fields: Fields) -> Words:
        """Return the words of a value."""
        head = self.head if fields is None else f"{HEAD}{_CHOSEN}{choice_of(fields)}"
        if fields is None and self._fields is None:
            return Words(head, words_in(all_texts(value)))
        return Words(head, words_in(text for *_, text in texts_of(value, fields, self._fields or [])))

    def lacking(self, item: ItemRow, value: Mapping[str, Any], rows: Iterable[WordRow]) -> Lacking | None:
        """Return what to compute of an item with these rows, None if they are those of its value."""
        head = next((row.word for row in rows if row.check == item.check), "")
        is_chosen = head.startswith(f"{HEAD}{_CHOSEN}")
        return None if head == self.head or is_chosen else Lacking(item.key, value, None)

    def of_values(self, values: Iterable[Lacking]) -> Program[dict[ItemKey, Words]]:
        """Return the words of values."""
        yield from ()
        return {key: self.words(value, fields) for key, value, fields in values}

    def queries(self, texts: Iterable[str]) -> Program[dict[str, tuple[str, ...]]]:
        """Return the words of queries."""
        yield from ()
        return {text: tuple(words_in([text])) for text in texts}


def chosen_in(head: str) -> Fields:
    """Return the fields that the put of an item with this head chose, None if it did not."""
    choice = head.removeprefix(f"{HEAD}{_CHOSEN}")
    return fields_of(choice) if choice != head else None


def choice_of(fields: Fields) -> str:
    """Return the stored form of the fields that a put chose: empty if it left them to the store."""
    return "" if fields is None else json.dumps(fields or [])


def fields_of(choice: str) -> Fields:
    """Return the fields of a choice, None if it is damaged."""
    try:
        return checked_fields(json.loads(choice)) or False if choice else None
    except (ValueError, RecursionError):
        return None


def _texts_at(value: Mapping[str, Any], field: str) -> list[str]:
    from langgraph.store.base import get_text_at_path, tokenize_path  # those who only look at items start without it

    path: str | list[str] = field if field in ("", WHOLE) else tokenize_path(field)
    try:
        found: list[str] = get_text_at_path(value, path)
    except TypeError:  # it has values that JSON has not, such as dates
        found = get_text_at_path(json.loads(json.dumps(dict(value), default=str, skipkeys=True)), path)
    return found
