#!/usr/bin/env python3
"""Write the asyncio methods of the savers and interfaces, `SaverProtocol` and `ForwardingMethods`.

You write a blocking method once, by hand. Its asyncio twin, `a` and its name, has the same signature and body, but
awaits the blocking one's calls; the twins stand at the end of their class, between MARK and END. `SaverProtocol` has
the signature of every public method, and the first paragraph of a blocking one. `ForwardingMethods` gives the savers
under LangGraph's names the methods that LangGraph's interface lacks. Run this script after you change a method; `make
check` runs it with `--check`, which writes nothing and fails if a file is stale.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

LIBS = Path(__file__).parents[1] / "libs"
CORE = LIBS / "core/src/threadmark"
LANGGRAPH = LIBS / "langgraph/src/threadmark_langgraph"
METHODS = (
    "saver/thread_methods.py",
    "leases/methods.py",
    "travel/methods.py",
    "operating/methods.py",
    "encryption/methods.py",
    "transactions/methods.py",
)
FOR_PROTOCOL = ("saver/saver.py", *METHODS)
WITH_TWINS = (
    *FOR_PROTOCOL,
    "interfaces/sessions.py",
    "interfaces/states.py",
    "interfaces/conversations.py",
    "replication/saver.py",
    "effects/effects.py",
)
PROTOCOL = CORE / "saver/protocol.py"
FORWARDING = LANGGRAPH / "forwarding.py"
OF_LANGGRAPH = {"get", "aget", "with_serde", "serde", "config_specs"}
"""Members that are not forwarded: LangGraph's base class has them, or `Checkpointer` refuses them."""

MARK = "    # Written by scripts/write_twins.py from the methods above: change those, and run it.\n"
END = "    # The end of the part that scripts/write_twins.py wrote.\n"
CALLS = {
    r"\brun\((?=\s*self\._driver)": "await arun(",
    r"\bself\._run\(": "await self._arun(",
    r"\bself\._play\(": "await self._aplay(",
    r"\bself\._pair\.play\(": "await self._pair.aplay(",
    r"\bself\._driver\.close\(": "await self._driver.aclose(",
    r"\bself\._pages\(": "self._apages(",
    r"\bself\._saver\.restore\(": "await self._saver.arestore(",
}
"""How a blocking method reaches the database, and how its twin does. A method with none of these has no twin."""

PROTOCOL_TEXT = '''"""`SaverProtocol`: the methods of every saver. Written by scripts/write_twins.py."""

{imports}


class SaverProtocol(Protocol):
    """The public interface of `Saver`, which documents each method.

    `threadmark.open`, `threadmark_langgraph.wrap` and the tools accept any object that has it: a `Saver`, one behind a
    proxy, or a class that you write.
    """

{methods}
'''

FORWARDING_TEXT = '''"""`ForwardingMethods`: all methods of a Threadmark saver. Written by scripts/write_twins.py."""

{imports}


class ForwardingMethods:
    """Each method calls that of the Threadmark saver, which documents it."""

    _saver: SaverProtocol

{methods}
'''

Method = ast.FunctionDef | ast.AsyncFunctionDef


def lines_of(text: str, first: int, end: int) -> str:
    """The lines of a text from `first` up to `end`, which is left out; both count from 1, as those of a node do."""
    return "".join(text.splitlines(keepends=True)[first - 1 : end - 1])


def head_of(text: str, method: Method) -> str:
    """The decorators and the signature of a method."""
    first = min([method.lineno, *(each.lineno for each in method.decorator_list)])
    return lines_of(text, first, method.body[0].lineno)


def body_of(text: str, method: Method) -> str:
    """The body of a method, without its docstring."""
    return lines_of(text, method.body[0].end_lineno + 1, method.end_lineno + 1)  # type: ignore[operator] # parsed


def twin_of(text: str, method: Method, names: set[str]) -> str:
    """The asyncio twin of a method; `names` are those of its class that have a twin."""
    head, body = head_of(text, method), body_of(text, method)
    own_calls = {rf"\bself\.{name}\(": f"await self.a{name}(" for name in names}
    for blocking, awaiting in {**CALLS, **own_calls}.items():
        body = re.sub(blocking, awaiting, body)
    if "self._apages(" in body:
        head = head.replace(f"def {method.name}(", f"def a{method.name}(").replace("-> Iterator[", "-> AsyncIterator[")
    else:
        head = head.replace(f"def {method.name}(", f"async def a{method.name}(")
    return f'{head}        """Like `{method.name}`, for asyncio."""\n{body}'


def twins_of(text: str, owner: ast.ClassDef) -> str:
    """The asyncio twins of a class."""
    public = [each for each in owner.body if isinstance(each, ast.FunctionDef) and not each.name.startswith("_")]
    reaching = "|".join(CALLS)
    reaching += "".join(rf"|\bself\.{each.name}\(" for each in public if re.search(reaching, body_of(text, each)))
    names = {each.name for each in public if re.search(reaching, body_of(text, each))}
    return "\n".join(twin_of(text, each, names) for each in public if each.name in names)


def with_twins(text: str) -> str:
    """The text of a module in which each class with MARK and END has the twins of today's methods."""
    text = re.sub(f"{re.escape(MARK)}.*?{re.escape(END)}", MARK + END, text, flags=re.DOTALL)
    for owner in reversed([each for each in ast.parse(text).body if isinstance(each, ast.ClassDef)]):
        lines = text.splitlines(keepends=True)
        if MARK in lines[owner.lineno :]:
            place = lines.index(MARK, owner.lineno) + 1
            text = "".join([*lines[:place], "\n", twins_of(text, owner), "\n", *lines[place:]])
    return text


def belongs_to_protocol(name: str) -> bool:
    """Whether a member of this name is public, or makes a saver a context manager."""
    return not name.startswith("_") or re.fullmatch("__a?(enter|exit)__", name) is not None


def members() -> Iterator[tuple[str, Method]]:
    """The public members of Saver, each with the text of its module."""
    for file in FOR_PROTOCOL:
        text = (CORE / file).read_text()
        classes = [each for each in ast.parse(text).body if isinstance(each, ast.ClassDef)]
        methods = [each for owner in classes for each in owner.body if isinstance(each, Method)]
        yield from ((text, each) for each in methods if belongs_to_protocol(each.name))


class Signatures:
    """The heads and summaries of methods, and the imports that their types need."""

    def __init__(self, **imports: str) -> None:
        self._imports = imports
        self._used = set(imports)

    def of(self, text: str, method: Method) -> tuple[str, str]:
        """Return the head of a method, and the first paragraph of its docstring."""
        for each in ast.walk(ast.parse(text)):
            if isinstance(each, ast.ImportFrom):
                self._imports |= {alias.name: f"from {each.module} import {alias.name}" for alias in each.names}
        types = [method.args, *([method.returns] if method.returns else [])]
        self._used |= {each.id for part in types for each in ast.walk(part) if isinstance(each, ast.Name)}
        summary = (ast.get_docstring(method) or "").split("\n\n")[0].replace("\n", "\n        ")
        return re.sub("  # noqa: ARG.*", "", head_of(text, method)), summary  # the stubs need no exception

    def imports(self) -> str:
        """Return the lines that import the types."""
        return "\n".join(self._imports[name] for name in sorted(self._used & self._imports.keys()))


def protocol() -> str:
    """The text of the module of SaverProtocol."""
    signatures = Signatures(Protocol="from typing import Protocol")
    methods = []
    for text, method in members():
        head, summary = signatures.of(text, method)
        is_twin = summary.startswith("Like `") and summary.endswith("for asyncio.")
        methods.append(head + (f'        """{summary}"""\n\n' if summary and not is_twin else "        ...\n"))
    return PROTOCOL_TEXT.format(imports=signatures.imports(), methods="".join(methods))


def forwarding() -> str:
    """The text of the module of ForwardingMethods."""
    trees = [
        ast.parse((LANGGRAPH / name).read_text()) for name in ("checkpointer.py", "task_writes.py", "transactions.py")
    ]
    classes = [each for tree in trees for each in tree.body if isinstance(each, ast.ClassDef)]
    own = {each.name for owner in classes for each in owner.body if isinstance(each, Method)}
    signatures = Signatures(SaverProtocol="from threadmark import SaverProtocol")
    methods = []
    for text, method in members():
        if method.name not in own | OF_LANGGRAPH and not method.name.startswith("_"):
            head, summary = signatures.of(text, method)
            returns = "" if isinstance(method.returns, ast.Constant) else "return "  # the constant is None
            methods.append(f'{head}        """{summary}"""\n        {returns}{call_of(method)}\n')
    return FORWARDING_TEXT.format(imports=signatures.imports(), methods="\n".join(methods))


def call_of(method: Method) -> str:
    """The call of the same method of `self._saver`, with the same arguments."""
    arguments = method.args
    passed = [each.arg for each in arguments.args[1:]] + [f"{each.arg}={each.arg}" for each in arguments.kwonlyargs]
    passed += [f"**{arguments.kwarg.arg}"] if arguments.kwarg else []
    waits = "await " if isinstance(method, ast.AsyncFunctionDef) else ""
    return f"{waits}self._saver.{method.name}({', '.join(passed)})"


def formatted(text: str, path: Path) -> str:
    """The text as ruff sorts its imports and formats it."""
    for command in (["check", "--quiet", "--select", "I", "--fix"], ["format", "--quiet"]):
        ruff = [str(Path(sys.executable).parent / "ruff"), *command, "--stdin-filename", str(path), "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout
    return text


def main() -> None:
    """Write the stale files, or with `--check` name them."""
    stale = []
    for path in (*(CORE / file for file in WITH_TWINS), PROTOCOL, FORWARDING):
        today = path.read_text()
        text = protocol() if path == PROTOCOL else forwarding() if path == FORWARDING else with_twins(today)
        written = formatted(text, path)
        if today != written:
            stale.append(path.name)
            if "--check" not in sys.argv:
                path.write_text(written)
    if stale and "--check" in sys.argv:
        sys.exit(f"run scripts/write_twins.py, for these are not what it writes: {', '.join(stale)}")


if __name__ == "__main__":
    main()
