"""Vectors of values and queries: which texts count, and the embeddings that are asked for their vectors.

Texts are chosen as LangGraph's `index` configuration says. Embeddings are asked between transactions, once for all puts
of a batch, with each distinct text once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from langgraph.store.base import IndexConfig, ensure_embeddings

from threadmark.backends import ConfigError, Flow, short_repr
from threadmark.sealing import Cipher
from threadmark_store.calls import Call
from threadmark_store.shapes import ItemKey, ItemRow
from threadmark_store.texts import WHOLE, Fields, Lacking, checked_fields, choice_of, fields_of, texts_of
from threadmark_store.vectors.contract import CHOICE, Vector, VectorRow, model_name, vector_name
from threadmark_store.vectors.ranking import numpy, unit


class Index:
    """A store's `index`: its embeddings, the fields that they get, and the vectors that come of it."""

    def __init__(self, config: IndexConfig, cipher: Cipher | None) -> None:
        numpy()
        self._dims = _checked_dims(config)
        self.embeddings = ensure_embeddings(config.get("embed"))
        self.fields = checked_fields(config.get("fields") or [WHOLE])
        self.cipher = cipher
        name = config.get("model") or _name_of(self.embeddings)
        self.model = model_name(name, self._dims, is_sealed=cipher is not None)
        """The name of the space in which vectors can be compared."""

    def queries(self, texts: Iterable[str]) -> Flow[Call, dict[str, bytes]]:
        """Return the vectors of queries."""
        embed, aembed = self.embeddings.embed_query, self.embeddings.aembed_query
        found = yield from _embedded(
            texts, lambda each: list(map(embed, each)), lambda each: asyncio.gather(*map(aembed, each))
        )
        return {text: self._unit(numbers, "the query") for text, numbers in found.items()}

    def lacking(self, item: ItemRow, value: Mapping[str, Any], rows: Iterable[VectorRow]) -> Lacking | None:
        """Return what to compute of an item with these rows, None if they are those of its value."""
        mine = [row for row in rows if row.check == item.check]
        fields: Fields = next((fields_of(row.vector.field) for row in mine if row.vector.number == CHOICE), None)
        found = {row.vector[:2] for row in mine if row.model == self.model}
        texts = {text[:2] for text in texts_of(value, fields, self.fields)}
        return None if found == texts else Lacking(item.key, value, fields)

    def of_values(self, values: Iterable[Lacking]) -> Flow[Call, dict[ItemKey, tuple[Vector, ...]]]:
        """Return the vectors of values, and the choice of fields if there was one."""
        texts = {key: (list(texts_of(value, fields, self.fields)), fields) for key, value, fields in values}
        all_texts = (text for some, _ in texts.values() for _, _, text in some)
        found = yield from _embedded(all_texts, self.embeddings.embed_documents, self.embeddings.aembed_documents)
        units: dict[str, bytes] = {}
        vectors: dict[ItemKey, tuple[Vector, ...]] = {}
        for key, (some, fields) in texts.items():
            for field, _, text in some:
                if text not in units:
                    units[text] = self._unit(found[text], f"field {field!r} of item {key.key!r}")
            vectors[key] = self.known(key, fields, {(field, number): units[text] for field, number, text in some})
        return vectors

    def known(self, key: ItemKey, fields: Fields, units: Mapping[tuple[str, int], bytes]) -> tuple[Vector, ...]:
        """Return the vectors of an item with these directions, and the choice of fields if there was one."""
        choice = () if fields is None else (Vector(choice_of(fields), CHOICE, b""),)
        return *choice, *(self._sealed(key, Vector(*place, data)) for place, data in units.items())

    def opened(self, key: ItemKey, vector: Vector) -> bytes:
        """Return the data of a sealed vector."""
        return vector.data if self.cipher is None else self.cipher.open(vector.data, vector_name(key, vector))

    def _sealed(self, key: ItemKey, vector: Vector) -> Vector:
        if self.cipher is None:
            return vector
        return vector._replace(data=self.cipher.seal(vector.data, vector_name(key, vector)))

    def _unit(self, numbers: Sequence[float], owner: str) -> bytes:
        try:
            dims = len(numbers)
            data = unit(numbers) if dims == self._dims else b""
        except (TypeError, ValueError) as error:
            raise ConfigError(f"the embedding of {owner} is no vector: {error}") from error
        if dims != self._dims:
            raise ConfigError(
                f"the embedding of {owner} has {dims} dimensions, but `dims` of the store's index is {self._dims}: "
                "give the dimensions of your model"
            )
        return data


def _embedded(
    texts: Iterable[str],
    embed: Callable[[list[str]], Sequence[Sequence[float]]],
    aembed: Callable[[list[str]], Awaitable[Sequence[Sequence[float]]]],
) -> Flow[Call, dict[str, Sequence[float]]]:
    """Return the numbers of each distinct text."""
    distinct = tuple(dict.fromkeys(texts))
    if not distinct:
        return {}
    vectors = yield Call(lambda: embed(list(distinct)), lambda: aembed(list(distinct)))
    if len(vectors) != len(distinct):
        raise ConfigError(
            f"the embeddings of the store's index returned {len(vectors)} vectors for {len(distinct)} texts: "
            "there must be one for each text, in their order"
        )
    return dict(zip(distinct, vectors, strict=True))


def _checked_dims(config: IndexConfig) -> int:
    dims: object = config.get("dims")
    if type(dims) is not int or dims < 1:
        raise ConfigError(f"`dims` of a store's index must be the dimensions of your model, not {short_repr(dims)}")
    return dims


def _name_of(embeddings: object) -> str:
    """Return the name of the model, or else of the class or function."""
    for name in ("model", "model_name", "model_id"):
        found = getattr(embeddings, name, None)
        if isinstance(found, str) and found:
            return found
    function: Callable[..., Any] | None = getattr(embeddings, "func", None) or getattr(embeddings, "afunc", None)
    return getattr(function, "__qualname__", None) or type(function or embeddings).__qualname__
