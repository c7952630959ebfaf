"""Writes docs/reference/types.md from the catalogue: `PYTHONPATH=libs/core/src:tests python
tests/serde/types_table.py`.

A row says what the serializer just did with the kind, not what it is meant to do.
"""

from pathlib import Path

from serde.catalogue import EXACT, REFUSED
from serde.sameness import same
from threadmark.errors import SerializationError
from threadmark.serde import Serde

TABLE = Path(__file__).parents[2] / "docs" / "reference" / "types.md"

HEAD = """\
# What can be stored

What comes back from a checkpoint is equal to what was put, of the same types at every depth; or `put`
raises `SerializationError`, which names the place inside the value and the type, and nothing is stored.
This page is generated from the tests' catalogue (`tests/serde/types_table.py`), and a test compares it with
what the serializer does. Each kind is tested alone, inside each kind of container and record, and as a key
where it is hashable.

{exact} kinds come back exactly, {refused} are refused, {changed} come back changed.

## Good to know

* Two references to one object come back as two equal objects. A value that contains itself is refused.
* A value is at most 1,024 levels deep; a typed object is one level, and sets inside sets go 8 levels.
* Classes must be found by their name: defined at the top level of a module, or inside such a class. Only savers in
  memory (`MemorySaver` without a file, SQLite's `":memory:"`) also keep objects of classes that were defined inside a
  function, because they end with the process.
* Nothing of a class runs when its value is loaded: no `__init__`, `__post_init__`, validator or
  `__setstate__`. What could not be loaded so is refused at put: classes with a `__del__` or a metaclass that has
  `__getattribute__`, `__hash__` or `__eq__`, Structs with `__post_init__`, combinations of flags whose class has
  methods for making them. Keys and members of sets are asked for `__hash__` and `__eq__`; fields that are new get
  their defaults from the class; registered functions run.
* A parametrized generic model (`Box[int]`) is loaded where the program has made it already: write it out in a module,
  not only inside a function. With `Serde(allow=[...])` that lists its classes it is made.
* What is not part of a value: an exception's traceback and AttributeError's `obj`; `__orig_class__`, which
  typing leaves on instances of generic classes; whether an array was read-only or a view.
* An attribute is stored for the place in which it is: a slot or the instance's dictionary. Where a value has something
  in two places of one name, or in one that cannot be found, it is refused.
* A pydantic secret is stored as it is; turn on encryption if the database is not trusted with it.
* A class that has changed: a new field takes its default. Where fields were removed or renamed, say what is
  meant: `threadmark.serde.register(TheClass, upgrade=lambda old: {{"total": old["count"]}})`. A class that
  was moved or renamed: `register(TheClass, aliases=["old.module:OldName"])`. Otherwise loading is an error,
  never a guess.
* Classes of your own that no family knows: `register(TheClass, "a-name", encode, decode)`; those of a library:
  [kinds.md](kinds.md).
* Which classes may be loaded: those that the program has imported; with `Serde(allow=[...])` only the
  listed ones, the registered ones and the builtin kinds, at put and at load alike.
"""


def table() -> str:
    """The page."""
    rows, changed = [], 0
    for group, kinds in EXACT.items():
        rows += ["", f"## {group}", "", "| kind | |", "| --- | --- |"]
        for name, make in kinds.items():
            serde, value = Serde(), make()
            is_same = same(value, serde.loads_typed(serde.dumps_typed(value)))
            changed += not is_same
            rows.append(f"| {name} | {'comes back exactly' if is_same else 'CHANGED'} |")
    rows += ["", "## Refused", "", "| kind | the error says |", "| --- | --- |"]
    for name in REFUSED:
        rows.append(f"| {name} | {_refusal(name)} |")
    counts = {"exact": sum(map(len, EXACT.values())) - changed, "refused": len(REFUSED), "changed": changed}
    return HEAD.format(**counts) + "\n".join(rows) + "\n"


def _refusal(name: str) -> str:
    make, words = REFUSED[name]
    try:
        Serde().dumps_typed(make())
    except SerializationError as error:
        return f"... {words} ..." if words in error.problem else "OTHER WORDS"
    return "STORED"


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
