"""Encoding and decoding, compared with LangGraph's own serializer and pickle in the same process.

Run it: `python benchmarks/serde_speed.py`, and again with `THREADMARK_PURE_PYTHON=1` for the serializer in Python. A
ratio above 1 means that Threadmark is faster than LangGraph's, or smaller; "pickle" is the same ratio to pickle, which
runs whatever the bytes say. Each figure is the best of many short runs, taken in turns so that a busy machine slows
all. The peer's arrays come back read-only, which saves it a copy.
"""

import dataclasses
import pickle
import random
import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import BaseModel

from threadmark.runtime import compiled
from threadmark.serde import Serde

ROUNDS = 40
WORDS = [f"word{number}" for number in range(3000)]


class Passage(BaseModel):
    """A leaf of the deep state."""

    text: str
    score: float
    tags: list[str]


class Finding(BaseModel):
    """A branch of the deep state."""

    title: str
    passages: list[Passage]
    origin: str | None = None


@dataclasses.dataclass
class Chapter:
    """A record with models inside."""

    number: int
    findings: list[Finding]
    notes: dict[str, Any]


@dataclasses.dataclass
class Step:
    """A record in a record in a record."""

    name: str
    took: float
    steps: list["Step"]
    seen: set[str] = dataclasses.field(default_factory=set)


def text(rng: random.Random, words: int) -> str:
    """Some words."""
    return " ".join(rng.choices(WORDS, k=words))


def messages(rng: random.Random) -> list[Any]:
    """A conversation of 500 messages in which every third turn calls a tool."""
    found: list[Any] = []
    while len(found) < 500:
        found.append(HumanMessage(content=text(rng, 20), id=str(uuid.UUID(int=rng.getrandbits(128)))))
        call = {
            "name": "search",
            "args": {"query": text(rng, 4)},
            "id": f"call_{len(found)}",
            "type": "tool_call",
        }
        found.append(
            AIMessage(
                content=text(rng, 60),
                id=f"run-{rng.getrandbits(64):x}",
                tool_calls=[call] if len(found) % 3 == 0 else [],
                response_metadata={"model_name": "some-model", "finish_reason": "stop"},
                usage_metadata={"input_tokens": 900, "output_tokens": 120, "total_tokens": 1020},
            )
        )
        if len(found) % 3 == 0:
            found.append(ToolMessage(content=text(rng, 40), tool_call_id=f"call_{len(found)}", name="search"))
    return found[:500]


def plain_messages(rng: random.Random) -> list[dict[str, Any]]:
    """The same conversation in dictionaries."""
    return [
        {
            "role": rng.choice(["user", "assistant"]),
            "content": text(rng, 40),
            "id": f"id-{number}",
            "meta": {"model": "some-model", "tokens": number * 7, "stop": None},
        }
        for number in range(500)
    ]


def deep_state(rng: random.Random) -> dict[str, Any]:
    """Dataclasses that hold models that hold models."""

    def passage() -> Passage:
        return Passage(text=text(rng, 15), score=rng.random(), tags=rng.choices(WORDS, k=3))

    def finding() -> Finding:
        return Finding(title=text(rng, 4), passages=[passage() for _ in range(5)])

    return {
        "chapters": [
            Chapter(number, [finding() for _ in range(5)], {"state": "open", "round": number}) for number in range(40)
        ]
    }


def flat_models(rng: random.Random) -> list[Passage]:
    """Models without models inside."""
    return [Passage(text=text(rng, 15), score=rng.random(), tags=rng.choices(WORDS, k=3)) for _ in range(1000)]


def records(rng: random.Random) -> list[Step]:
    """Dataclasses only, three levels deep."""

    def step(depth: int) -> Step:
        inner = [step(depth - 1) for _ in range(4)] if depth else []
        return Step(text(rng, 2), rng.random(), inner, set(rng.choices(WORDS, k=2)))

    return [step(3) for _ in range(12)]


def arrays(rng: random.Random) -> dict[str, Any]:
    """A megabyte of numbers."""
    generator = np.random.default_rng(rng.randrange(1000))
    return {"embedding": generator.random((1000, 64)), "mask": generator.random((500_000,)) > 0.5}


def scalars(rng: random.Random) -> list[dict[str, Any]]:
    """Rows of small values of the kinds that msgpack carries."""
    return [{"a": n, "b": n * rng.random(), "c": str(n), "d": None, "e": n % 2 == 0} for n in range(5000)]


def best(actions: list[Callable[[], Any]]) -> list[float]:
    """The shortest time of each action, in microseconds; the actions take turns."""
    shortest = [float("inf")] * len(actions)
    for _ in range(ROUNDS):
        for location, action in enumerate(actions):
            start = time.perf_counter()
            action()
            shortest[location] = min(shortest[location], (time.perf_counter() - start) * 1e6)
    return shortest


STATES: dict[str, Callable[[random.Random], Any]] = {
    "500 LangChain messages": messages,
    "500 plain dict messages": plain_messages,
    "models and dataclasses": deep_state,
    "1 MB of numpy": arrays,
    "many small scalars": scalars,
    "models, flat": flat_models,
    "dataclasses, nested": records,
}
OUR_CLASSES = [(__name__, cls.__name__) for cls in (Passage, Finding, Chapter, Step)]


def main() -> None:
    """Print a row for each kind of state."""
    ours, theirs = Serde(), JsonPlusSerializer(allowed_msgpack_modules=OUR_CLASSES)
    head = ("encode", "decode", "bytes", "encode x", "decode x", "size x", "pickle", "unpickle")
    print("with the compiled parts" if compiled.IN_USE else "in Python only")
    print(f"{'state':24}" + "".join(f"{title:>11}" for title in head))
    for title, make in STATES.items():
        value = make(random.Random(7))
        mine, other = ours.dumps_typed(value), theirs.dumps_typed(value)
        pickled = pickle.dumps(value)
        encode, peer_encode, pickle_encode = best(
            [partial(ours.dumps_typed, value), partial(theirs.dumps_typed, value), partial(pickle.dumps, value)]
        )
        decode, peer_decode, pickle_decode = best(
            [partial(ours.loads_typed, mine), partial(theirs.loads_typed, other), partial(pickle.loads, pickled)]
        )
        print(
            f"{title:24}{encode:9.0f}us{decode:9.0f}us{len(mine[1]):11,}"
            f"{peer_encode / encode:10.2f}x{peer_decode / decode:10.2f}x{len(other[1]) / len(mine[1]):10.2f}x"
            f"{pickle_encode / encode:10.2f}x{pickle_decode / decode:10.2f}x"
        )


if __name__ == "__main__":
    main()
