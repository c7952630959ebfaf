"""`Output`: the output of a command, as text for people or as one JSON object a line for programs."""

import codecs
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from shutil import get_terminal_size
from typing import IO, Any, TypeVar

from threadmark.types import OnProgress
from threadmark_cli.exits import RefusedError
from threadmark_cli.output.json_values import json_line
from threadmark_cli.output.pager import pager_command, paging
from threadmark_cli.output.printable import one_line
from threadmark_cli.output.styles import Part, plain, styled
from threadmark_cli.output.tables import Column, laid_out

Item = TypeVar("Item")


class Output:
    """The output of a command: results to stdout, everything else to stderr.

    Every text passes `one_line` here, so that no stored text can command a terminal.
    """

    def __init__(self, *, as_json: bool = False, color: bool | None = None, pager: bool = True) -> None:
        self.as_json = as_json
        self.terminal = sys.stdout.isatty()
        self._color = _colors(sys.stdout, color)
        self._error_color = _colors(sys.stderr, color)
        self._pager = pager
        self._sink: IO[str] = sys.stdout

    @property
    def width(self) -> int | None:
        """How many cells a line has; None if it may have any number."""
        return get_terminal_size().columns if self.terminal else None

    def line(self, *parts: Part) -> None:
        """Write a line of pieces. A line end within them becomes its escape."""
        self._write(self._sink, parts, color=self._color)

    def record(self, record: Mapping[str, Any]) -> None:
        """Write one JSON object."""
        self._sink.write(json_line(record, ascii_only=not _is_utf_8(self._sink)) + "\n")

    def rows(
        self, columns: Sequence[Column[Item]], items: Iterable[Item], record: Callable[[Item], Mapping[str, Any]]
    ) -> None:
        """Write items: as a table, or with `--json` as the `record` of each."""
        if self.as_json:
            for item in items:
                self.record(record(item))
            return
        for parts in laid_out(columns, items, self.width):
            self.line(*parts)

    def note(self, *parts: Part) -> None:
        """Write a note on stderr, apart from the result."""
        self._sink.flush()
        self._write(sys.stderr, parts, color=self._error_color)

    def warn(self, text: str) -> None:
        """Say on stderr that something may not be as it should."""
        self.note(("warning: ", "warning"), text)

    def fail(self, text: str) -> None:
        """Say on stderr why nothing was done."""
        self.note(("error: ", "bad"), text)

    @contextmanager
    def paged(self) -> Iterator[None]:
        """The output of the block goes through the pager, if a person looks at it."""
        command = pager_command(os.environ) if self._pager and self.terminal and not self.as_json else None
        if command is None or self._sink is not sys.stdout:
            yield
            return
        with ExitStack() as stack:
            stack.enter_context(suppress(BrokenPipeError))  # the pager was left before its end
            sys.stdout.flush()
            self._sink = stack.enter_context(paging(command))
            stack.callback(self._unpaged)
            yield

    def _unpaged(self) -> None:
        self._sink = sys.stdout

    @contextmanager
    def progress(self, label: str) -> Iterator[OnProgress]:
        """Give the `progress` argument for a method of a saver: a bar, if a person looks at it."""
        from threadmark_cli.output.progress import progress_bar  # rich's takes a while to import

        with progress_bar(sys.stderr, label, color=self._error_color, visible=sys.stderr.isatty()) as update:
            yield update

    def confirm(self, question: str, *, yes: bool) -> None:
        """Ask whether to go on, unless `yes` is set already. Raises RefusedError if the answer is not yes."""
        if yes:
            return
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise RefusedError(f"{one_line(question)} Nobody is here to answer: give --yes to go on without a question")
        sys.stderr.write(f"{one_line(question)} [y/N] ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
            raise RefusedError("nothing was done")

    def flush(self) -> None:
        """See that everything has been written."""
        self._sink.flush()

    def _write(self, sink: IO[str], parts: Sequence[Part], *, color: bool) -> None:
        if not color:
            sink.write(one_line("".join(map(plain, parts))) + "\n")
            return
        pieces = (one_line(part) if isinstance(part, str) else styled(one_line(part[0]), part[1]) for part in parts)
        sink.write("".join(pieces) + "\n")


def _is_utf_8(stream: IO[str]) -> bool:
    """Whether text for a stream becomes UTF-8. For files and pipes it does not on Windows."""
    return codecs.lookup(getattr(stream, "encoding", None) or "utf-8").name == "utf-8"


def _colors(stream: IO[str], choice: bool | None) -> bool:  # noqa: FBT001 - the user's choice, None if there is none
    """Whether a stream gets colours: as was asked for, else on a terminal that has them, unless NO_COLOR is set."""
    if choice is not None:
        return choice
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") not in {None, "", "dumb"}
