"""The parts of LangGraph that `threadmark_langgraph` needs: the base class, nothing that a release might move."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import run

import pytest
from langgraph.checkpoint.serde import types

import threadmark_langgraph
from threadmark_langgraph import sends, shapes, values

PACKAGE = Path(threadmark_langgraph.__file__).parent
MODULES = sorted(PACKAGE.glob("*.py"))
"""Those that are imported with the package. The modules that move threads are imported when they are used."""

BASE = "langgraph.checkpoint.base"

PUT_AND_GET = """
import threadmark_langgraph
from langgraph.checkpoint.base import empty_checkpoint
from threadmark import Serde

thread = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}
for saver in (threadmark_langgraph.InMemorySaver(serde=Serde()), threadmark_langgraph.SqliteSaver(":memory:")):
    with saver:
        checkpoint = {**empty_checkpoint(), "channel_values": {"a": [1]}, "channel_versions": {"a": 1}}
        stored = saver.put(thread, checkpoint, {"step": 1}, {"a": 1})
        saver.put_writes(stored, [("a", 2), ("__error__", ValueError("x"))], "task")
        found = saver.get_tuple(thread)
        assert found.checkpoint["channel_values"] == {"a": [1]}
        assert len(found.pending_writes) == 2
        assert len(list(saver.list(thread))) == 1
"""


def _python(code: str) -> str:
    ended = run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def _imports(nodes: Iterator[ast.AST]) -> Iterator[tuple[str, str]]:
    """The modules and names that are taken from LangGraph."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("langgraph"):
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.startswith("langgraph"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_at_import_only_the_base_class_and_its_types_are_taken_from_langgraph(path: Path) -> None:
    assert {module for module, _ in _imports(iter(ast.parse(path.read_text()).body))} <= {BASE}


def test_importing_the_package_imports_nothing_of_langgraph_but_the_base_class() -> None:
    listed = f"""
import sys
import {BASE}

def there():
    return {{name for name in sys.modules if name.partition(".")[0] in ("langgraph", "langchain_core")}}

before = there()
import threadmark_langgraph
print(sorted(there() - before), "threadmark_langgraph.moving" in sys.modules)
"""
    assert _python(listed) == "[] False\n"


def test_what_moves_threads_is_there_when_it_is_asked_for() -> None:
    for name in threadmark_langgraph.__all__:
        assert getattr(threadmark_langgraph, name)
    assert threadmark_langgraph.migrate.__module__.startswith("threadmark_langgraph.moving")
    with pytest.raises(AttributeError, match="'threadmark_langgraph' has no attribute 'migrat'"):
        _ = threadmark_langgraph.migrat


def test_saving_works_without_any_name_of_langgraph_that_is_not_the_base_classs() -> None:
    taken = {
        (module, name)
        for path in PACKAGE.rglob("*.py")
        for module, name in _imports(ast.walk(ast.parse(path.read_text())))
        if module != BASE
    }
    taken |= {
        (module, name) for names in (values.CLASSES, values.SLOTTED) for module in names for name in names[module]
    }
    private = sorted((module, name) for module, name in taken if name and module.startswith("langgraph."))
    assert ("langgraph.checkpoint.serde.types", "_DeltaSnapshot") in private
    assert ("langgraph.types", "Send") in private
    # Modules that the base class itself has imported keep their names for good; a later import finds none.
    gone = f"""
import importlib
import {BASE}

for module, name in {private!r}:
    try:
        vars(importlib.import_module(module)).pop(name, None)
    except ImportError:
        pass
"""
    _python(gone + PUT_AND_GET)


@pytest.mark.parametrize("module", sorted({*values.CLASSES, *values.SLOTTED} - {"langgraph.checkpoint.serde.types"}))
def test_saving_works_without_a_module_that_values_come_from(module: str) -> None:
    _python(f"import sys\nimport {BASE}\nsys.modules[{module!r}] = None\n" + PUT_AND_GET)


def test_channels_have_langgraphs_names() -> None:
    assert (sends.TASKS, shapes.ERROR) == (types.TASKS, types.ERROR)


def test_every_class_that_is_registered_is_there_in_this_release() -> None:
    """A name that is mistyped would be left out in silence."""
    expected = sum(map(len, [*values.CLASSES.values(), *values.SLOTTED.values()]))
    assert len([*values._existing(values.CLASSES), *values._existing(values.SLOTTED)]) == expected
