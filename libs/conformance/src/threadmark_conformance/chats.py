"""Data for the cases about parts of a state: a chat, and a large value next to it."""

import random
from dataclasses import dataclass, field
from typing import Any, NamedTuple

LARGE = random.Random(0).randbytes(200_000)
"""Text that no compression makes shorter."""


@dataclass
class Said:
    """A message as an application may have it."""

    content: Any
    id: str
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def shouted(self) -> str:
        """Fail, because no code of a class may run."""
        raise AssertionError("a property runs code")


class Pair(NamedTuple):
    """Two values."""

    left: Any
    right: Any


def chat(count: int) -> list[Any]:
    """Return messages of every kind, all different."""
    return [
        Said(f"text {number} " * 9, f"m{number}", {"n": number})
        if number % 2
        else {"content": f"text {number} " * 9, "id": f"m{number}"}
        for number in range(count)
    ]
