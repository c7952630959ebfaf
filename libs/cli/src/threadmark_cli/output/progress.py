"""How far a long operation has come: a bar on stderr, if that is a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from threadmark.types import OnProgress
from threadmark.types import Progress as Done


@contextmanager
def progress_bar(stream: TextIO, label: str, *, color: bool, visible: bool) -> Iterator[OnProgress]:
    """Give the `progress` argument for a method of a saver. The bar is gone at the end."""
    if not visible:
        yield lambda _: None
        return
    console = Console(file=stream, no_color=not color, markup=False, highlight=False)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=None)

        def update(done: Done) -> None:
            bar.update(task, completed=done.threads, total=done.of)

        yield update
