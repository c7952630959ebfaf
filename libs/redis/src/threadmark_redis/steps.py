"""The steps of this backend's programs: reading commands, and scripts.

Every step is atomic by itself. `transactions.py` adds the rest for transactions of several steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha1
from importlib import resources
from typing import Any, NamedTuple

from threadmark.backends import Program, Step

Command = tuple[bytes | str | int, ...]
"""A command with its arguments. If it has a key, that is the first argument."""


class Script(NamedTuple):
    """A Lua script."""

    name: str
    text: str
    sha: str


@cache
def script(name: str, *includes: str) -> Script:
    """Return the script of that name in the folder `lua`, after the parts that it includes."""
    folder = resources.files("threadmark_redis") / "lua"
    text = "\n".join((folder / f"{part}.lua").read_text("utf-8") for part in (*includes, name))
    return Script(name, text, sha1(text.encode(), usedforsecurity=False).hexdigest())


@dataclass(slots=True)
class Commands(Step):
    """Commands that only read, in one pipeline. The answer is a list of replies, as RESP2 has them.

    So text is bytes, whatever the client's settings, and maps or pairs of RESP3 are flat lists. Commands of several
    slots may be sent to their nodes at the same time.
    """

    commands: Sequence[Command]


@dataclass(slots=True)
class Run(Step):
    """One script. The answer is its reply, in which text is also bytes.

    All keys belong to one slot.
    """

    script: Script
    keys: Sequence[bytes]
    args: Sequence[bytes | int]
    writes: bool = True


@dataclass(slots=True)
class RunEach(Step):
    """One script that only reads, once for each item of `calls`: (keys, arguments). The answer is a list of replies.

    The calls may be sent in one pipeline, and those of several slots to their nodes at the same time.
    """

    script: Script
    calls: Sequence[tuple[Sequence[bytes], Sequence[bytes | int]]]


@dataclass(slots=True)
class AllKeys(Step):
    """All keys with a pattern, on every master (SCAN). The answer is a list of keys, each once, in any order."""

    pattern: bytes


def commands(asked: Sequence[Command]) -> Program[list[Any]]:
    """Send commands that only read. Returns their replies."""
    replies: list[Any] = (yield Commands(asked)) if asked else []
    return replies


def run(
    step_script: Script, keys: Sequence[bytes], args: Sequence[bytes | int], *, writes: bool = True
) -> Program[Any]:
    """Run a script. Returns its reply."""
    reply: Any = yield Run(step_script, keys, args, writes)
    return reply


def run_each(step_script: Script, calls: Sequence[tuple[Sequence[bytes], Sequence[bytes | int]]]) -> Program[list[Any]]:
    """Run a script that only reads for each of some threads. Returns the replies."""
    replies: list[Any] = (yield RunEach(step_script, calls)) if calls else []
    return replies


def all_keys(pattern: bytes) -> Program[list[bytes]]:
    """Return all keys with a pattern."""
    found: list[bytes] = yield AllKeys(pattern)
    return found
