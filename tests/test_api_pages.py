"""docs/reference/api has every public name and method, each with an example that uses it, and no other name."""

import ast
import inspect
import re
from dataclasses import is_dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import is_typeddict

import pytest
from langgraph.store.base import BaseStore

import threadmark

ROOT = Path(__file__).parent.parent
LEFT_OUT = {"threadmark_cli", "threadmark_conformance", "threadmark_speed"}
"""A command, a suite for authors of backends, and functions that core calls by itself."""
PACKAGES = {path.parent.name for path in ROOT.glob("libs/*/src/*/__init__.py")} - LEFT_OUT
PUBLIC = {
    f"{module}.{name}": getattr(import_module(module), name)
    for module in sorted(PACKAGES | {"threadmark.types"})
    for name in import_module(module).__all__
}
CLASSES = [value for value in PUBLIC.values() if inspect.isclass(value)]
PAGES = sorted((ROOT / "docs" / "reference" / "api").glob("*.md"))
EXAMPLES = {
    name: "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    for page in PAGES
    for name, text in re.findall(
        r"^::: (\S+)\n(.*?)(?=^::: |^## |\Z)", page.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
}
"""The code between the name of an object and the next name or heading. tests/test_docs.py runs it."""


def _has_methods_to_show(value: object) -> bool:
    """Return whether methods have examples of their own: not those of shapes, protocols and errors."""
    return (
        inspect.isclass(value)
        and not issubclass(value, (tuple, Enum, BaseException))
        and not is_typeddict(value)
        and not is_dataclass(value)
        and not getattr(value, "_is_protocol", False)
    )


def _methods(cls: type) -> set[str]:
    """The public methods and properties of a class, without twins for asyncio and those that another page shows."""
    names = {name for name in dir(cls) if not name.startswith("_")}
    shown = {name for base in cls.__mro__[1:] if base in CLASSES or base is dict for name in dir(base)}
    if cls is not threadmark.Saver and hasattr(cls, "put_writes"):  # a checkpointer forwards the methods of a saver
        shown |= set(dir(threadmark.Saver))
    if issubclass(cls, BaseStore):  # whose methods LangGraph's documentation shows
        shown |= set(dir(BaseStore))
    return {name for name in names - shown if not (name.startswith("a") and name[1:] in names)}


NAMES = sorted(
    {*PUBLIC}
    | {f"{name}.{each}" for name, value in PUBLIC.items() if _has_methods_to_show(value) for each in _methods(value)}
)


def test_every_name_has_an_example() -> None:
    missing = [name for name in NAMES if not EXAMPLES.get(name)]
    assert not missing, f"write `::: name` and an example into a page of docs/reference/api for {', '.join(missing)}"


@pytest.mark.parametrize("name", sorted({name.rpartition(".")[0] for name in EXAMPLES}))
def test_an_example_uses_its_name(name: str) -> None:
    unused = [each for each, code in EXAMPLES.items() if each.rpartition(".")[0] == name and not _uses(code, each)]
    assert not unused, f"the example behind the name does not use it: {', '.join(unused)}"


def test_the_methods_of_a_saver_are_among_the_names() -> None:
    assert {"threadmark.Saver.put", "threadmark.Saver.prune", "threadmark.Saver.lease"} <= {*NAMES}
    assert not {"threadmark.Saver.aput", "threadmark_sqlite.SqliteSaver.put"} & {*NAMES}


def test_no_other_name_is_shown() -> None:
    others = [name for name in EXAMPLES if name not in NAMES and name.rpartition(".")[0] not in PUBLIC]
    assert not others, f"neither public names nor attributes of one: {', '.join(others)}"


def test_a_name_is_shown_once() -> None:
    shown = [name for page in PAGES for name in re.findall(r"^::: (\S+)$", page.read_text("utf-8"), re.MULTILINE)]
    assert sorted(shown) == sorted(EXAMPLES)


def _uses(code: str, name: str) -> bool:
    """Return whether code has the last part of a name, as a name, an attribute or an import."""
    nodes = ast.walk(ast.parse(code))
    return name.rpartition(".")[2] in {getattr(node, field, None) for node in nodes for field in ("id", "attr", "name")}
