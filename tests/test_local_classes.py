"""Objects of classes that were defined inside a function: kept by savers in memory, refused by all others."""

import gc
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import pydantic
import pytest

import threadmark
from threadmark import ForbiddenTypeError, MemorySaver, Saver, SerializationError
from threadmark.serde import Serde
from threadmark_conformance.engine import at, checkpoint
from threadmark_langgraph import InMemorySaver, SqliteSaver
from threadmark_sqlite import SqliteSaver as FileSaver

IN_MEMORY: dict[str, Callable[[], Saver]] = {
    "memory": MemorySaver,
    "SQLite in memory": lambda: FileSaver(":memory:"),
    "a connection in memory": lambda: FileSaver(sqlite3.connect(":memory:", check_same_thread=False)),
    "another serializer's settings": lambda: MemorySaver(serde=Serde(allow=[f"{__name__}:*", pydantic.RootModel])),
    "with_serde": lambda: MemorySaver().with_serde(Serde()),
}


Item = TypeVar("Item")


class Box(pydantic.BaseModel, Generic[Item]):
    item: Item


def local_objects(number: int) -> list[Any]:
    @dataclass
    class Local:
        number: int

    class Model(pydantic.BaseModel):
        number: int

    class Pair(NamedTuple):
        number: int

    class Choice(Enum):
        ONE = number

    class LocalBox(pydantic.BaseModel, Generic[Item]):
        item: Item

    model = Model(number=number)
    generic = [Box[Model](item=model), pydantic.RootModel[list[Model]]([model]), LocalBox[int](item=number)]
    return [Local(number), model, Pair(number), Choice.ONE, *generic]


def put(saver: Any, values: list[Any]) -> Any:
    return saver.put(at("thread", ""), checkpoint({"a": values}), {}, {"a": 1})


@pytest.mark.parametrize("name", IN_MEMORY)
def test_a_saver_in_memory_keeps_them(name: str) -> None:
    one, other = local_objects(1), local_objects(2)  # classes of the same names, and not the same
    with IN_MEMORY[name]() as saver:
        for values in (one, other, one):
            config = put(saver, values)
            stored = saver.get_tuple(config)
            assert stored is not None
            found = stored.checkpoint["channel_values"]["a"]
            assert found == values
            assert list(map(type, found)) == list(map(type, values))
            saver.put_writes(config, [("a", values[0])], "task")
        assert saver.verify(decode=True).unreadable == []


@pytest.mark.parametrize("saver", [InMemorySaver, lambda: SqliteSaver(":memory:")], ids=["memory", "sqlite"])
def test_langgraphs_names_for_savers_in_memory_keep_them(saver: Any) -> None:
    values = local_objects(1)
    with saver() as opened:
        config = put(opened, values)
        assert opened.get_tuple(config).checkpoint["channel_values"]["a"] == values


def test_every_other_saver_refuses_them(tmp_path: Path) -> None:
    pair = (MemorySaver(), FileSaver(tmp_path / "pair.db"))
    savers: list[Saver] = [
        FileSaver(tmp_path / "file.db"),
        MemorySaver(file=tmp_path / "kept"),
        threadmark.replicated(*pair),
    ]
    for saver in savers:
        with saver:
            for value in local_objects(1):
                with pytest.raises(SerializationError, match=r"inside a function.*top level.*Only a saver in memory"):
                    put(saver, [value])


def test_a_class_that_the_program_has_dropped_is_not_found() -> None:
    serde = Serde().keeping_local_classes()
    stored = serde.dumps_typed(local_objects(1)[0])
    del serde
    gc.collect()
    with pytest.raises(ForbiddenTypeError, match="no longer holds the class"):
        Serde().keeping_local_classes().loads_typed(stored)
    with pytest.raises(ForbiddenTypeError):
        Serde().loads_typed(stored)


def test_what_is_allowed_is_asked_for_them_as_well() -> None:
    with MemorySaver(serde=Serde(allow=["other:*"])) as saver, pytest.raises(ForbiddenTypeError, match="not allowed"):
        put(saver, local_objects(1)[:1])
