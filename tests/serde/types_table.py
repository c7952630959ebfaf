"""Writes docs/reference/types.md from the catalogue: `PYTHONPATH=libs/core/src:tests python
tests/serde/types_table.py`.

A row reports the serializer's actual handling of the kind, not the intended one.
"""

from pathlib import Path

from serde.catalogue import EXACT, REFUSED
from serde.sameness import same
from threadmark.errors import SerializationError
from threadmark.serde import Serde

TABLE = Path(__file__).parents[2] / "docs" / "reference" / "types.md"

HEAD = """\
# Types of values

A value comes back from a checkpoint equal to the value that you put, of the same types at every depth. Otherwise `put`
raises a `SerializationError`, which names the type and the place inside the value, and nothing is stored.

{exact} kinds come back exactly, {refused} are refused, {changed} come back changed. Each kind is tested alone, inside
each kind of container and record, and as a key if it is hashable. The lists are generated from the tests
(`tests/serde/types_table.py`).

## Rules

* **References.** Two references to one object come back as two equal objects. A value that contains itself is refused.
* **Depth.** A value is at most 1,024 levels deep; a typed object is one level. Sets nest at most 8 levels deep.
* **Places of classes.** Define your classes at the top level of a module, or inside such a class. Savers in memory
  (`MemorySaver` without a file, SQLite's `":memory:"`) also keep objects of classes that you define inside a function,
  because both end with the process.
* **Allowed classes.** You can load the classes that your program has imported. With `Serde(allow=[...])` you can put
  and load only the listed classes, the registered ones and the builtin kinds.
* **No code runs.** Loading a value runs nothing of its class: no `__init__`, `__post_init__`, validator or
  `__setstate__`. `put` refuses classes that cannot be loaded this way: those with a `__del__` or with a metaclass that
  has `__getattribute__`, `__hash__` or `__eq__`, Structs with `__post_init__`, and combinations of flags whose class
  has methods that make them. Three things do run: `__hash__` and `__eq__` of keys and members of sets, the defaults of
  new fields, and functions that you registered.
* **Generic models.** A parametrized generic model (`Box[int]`) is loaded if your program has already made it: write it
  out in a module, not only inside a function. If you list its classes in `Serde(allow=[...])`, it is made for you.
* **Changed classes.** A new field takes its default. For removed or renamed fields, register an upgrade:
  `threadmark.serde.register(TheClass, upgrade=lambda old: {{"total": old["count"]}})`. For a class that you moved or
  renamed: `register(TheClass, aliases=["old.module:OldName"])`. Otherwise loading raises an error and never guesses.
* **Other classes.** Register your own: `register(TheClass, "a-name", encode, decode)`. For those of a library, write a
  package ([kinds.md](../how-to/kinds.md)).
* **Left out.** These are not part of a value: an exception's traceback and AttributeError's `obj`; `__orig_class__`,
  which typing leaves on instances of generic classes; whether an array was read-only or a view.
* **Attributes.** An attribute is stored with its place, a slot or the instance's dictionary. A value with two
  attributes of one name, or one in a place that cannot be found, is refused.
* **Secrets.** A pydantic secret is stored in clear. Turn on [encryption](../how-to/encryption.md) if you do not trust
  the database with it.
"""


def table() -> str:
    """The page."""
    rows, changed = [], 0
    for group, kinds in EXACT.items():
        rows += ["", f"## {group}", ""]
        for name, make in kinds.items():
            serde, value = Serde(), make()
            is_same = same(value, serde.loads_typed(serde.dumps_typed(value)))
            changed += not is_same
            rows.append(f"* {name}{'' if is_same else ': CHANGED'}")
    rows += ["", "## Refused kinds", "", "| kind | message |", "| --- | --- |"]
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
