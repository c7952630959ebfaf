import sqlite3
from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

from threadmark.runtime.program import Driver, Operation, Program, Step, Transaction

_T = TypeVar("_T")
_Given = TypeVar("_Given")
_Asked = TypeVar("_Asked")

def run(driver: Driver, operation: Operation[_T]) -> _T: ...
def play(generator: Generator[_Asked, Any, _T], answer: Callable[[_Asked], Any]) -> _T: ...

class AtOnce(Program[_T]):
    def __init__(
        self, step: tuple[Callable[..., _T | None], _Given], steps: Callable[[_Given], Program[_T]]
    ) -> None: ...
    def send(self, answer: Any, /) -> Step: ...
    def throw(self, *error: Any) -> Step: ...

class Player:
    def __init__(
        self,
        sql: Any,
        steps: tuple[type, type, type],
        execute: Callable[[sqlite3.Connection, Step], Any],
        again: Callable[[sqlite3.Connection, Step, Exception], Any],
        bounds: tuple[int, int, Callable[[sqlite3.Connection, int], int]],
    ) -> None: ...
    def played(self, connection: sqlite3.Connection, program: Program[_T]) -> _T: ...
    def committed(
        self,
        connection: sqlite3.Connection,
        transaction: Transaction[Any],
        waiting: Sequence[object] = (),
        join: Callable[[], None] | None = None,
    ) -> Any: ...
