"""Each room of core can be deleted: without its folder everything else is imported, and stores and reads threads."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from test_house import CORE, ROOMS, ROOT, SURFACE

USE = """
import importlib, pkgutil, sys, tempfile
import threadmark

for module in pkgutil.walk_packages(threadmark.__path__, "threadmark."):
    importlib.import_module(module.name)
from threadmark.memory import MemorySaver
from threadmark_sqlite import SqliteSaver

with tempfile.TemporaryDirectory() as folder:
    for saver in (MemorySaver(), SqliteSaver(f"{folder}/threads.db")):
        with saver:
            config = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}
            for number in range(3):
                made = {"v": 1, "id": threadmark.new_id(), "channel_values": {"count": number}, "versions_seen": {},
                        "channel_versions": {"count": number + 1}, "ts": "2026-01-01T00:00:00+00:00"}
                config = saver.put(config, made, {"step": number}, {"count": number + 1})
                saver.put_writes(config, [("count", number)], "task")
            assert saver.get(config)["channel_values"] == {"count": 2}
            assert [found.metadata["step"] for found in saver.list({"configurable": {"thread_id": "1"}})] == [2, 1, 0]
            assert [found.id for found in saver.list_threads().threads] == ["1"]
            assert hasattr(saver, "verify") == (sys.argv[1] != "operating")  # the room that has it
            if hasattr(saver, "verify"):
                assert saver.verify().problems == []
            assert saver.prune(["1"]).checkpoints == 2
print(threadmark.__file__)
"""


def _without(room: str, text: str) -> str:
    """A module of the surface after you have deleted its lines about a room, and the names made of them."""
    tree = ast.parse(text)
    gone: set[str] = set()
    for node in [each for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)]:
        if (node.module or "").startswith(f"threadmark.{room}"):
            gone |= {alias.asname or alias.name for alias in node.names}
            node.names = [ast.alias("annotations")]
            node.module = "__future__"

    class _Deleted(ast.NodeTransformer):
        def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
            return None if node.module == "__future__" else node

        def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
            node.bases = [base for base in node.bases if ast.unparse(base) not in gone]
            node.body = [each for each in node.body if not self._names_what_is_gone(each)]
            return self.generic_visit(node)

        def visit_Call(self, node: ast.Call) -> ast.AST:
            node.args = [each for each in node.args if not isinstance(each, ast.Name) or each.id not in gone]
            return self.generic_visit(node)

        def visit_If(self, node: ast.If) -> ast.AST | None:
            self.generic_visit(node)
            return node if node.body else None

        def visit_List(self, node: ast.List) -> ast.AST:
            node.elts = [each for each in node.elts if getattr(each, "value", None) not in gone]
            return node

        def _names_what_is_gone(self, node: ast.stmt) -> bool:
            signature = node.returns if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else None
            parameters = node.args if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else None
            parts = [each for each in (signature, parameters) if each is not None]
            return any(isinstance(each, ast.Name) and each.id in gone for part in parts for each in ast.walk(part))

    return ast.unparse(ast.fix_missing_locations(_Deleted().visit(tree)))


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_can_be_deleted(room: str, tmp_path: Path) -> None:
    copy = tmp_path / "threadmark"
    shutil.copytree(CORE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(copy / room)
    for name in SURFACE:
        module = copy / name
        if f"threadmark.{room}" in module.read_text(encoding="utf-8"):
            module.write_text(_without(room, module.read_text(encoding="utf-8")), encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), *(str(ROOT / "libs" / each / "src") for each in ("sqlite", "speed"))])
    done = subprocess.run(
        [sys.executable, "-c", USE, room],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).parent == copy
