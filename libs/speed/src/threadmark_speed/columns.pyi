from collections.abc import Callable, Iterable
from typing import Any

from threadmark.store.contract import CheckpointRow, Found, Outline, WriteRow

def id_column(text: str) -> str | bytearray: ...
def checkpoint_columns(thread: int, row: CheckpointRow) -> tuple[Any, ...]: ...
def write_columns(thread: int, rows: Iterable[WriteRow]) -> list[Any]: ...
def write_rows(any_write: Callable[[Any], WriteRow], columns: list[tuple[Any, ...]]) -> list[WriteRow]: ...
def checkpoint_row(any_outline: Callable[[str, Any], Outline], thread_id: str, columns: Any) -> CheckpointRow: ...
def found_of(
    any_outline: Callable[[str, Any], Outline],
    any_write_of: Callable[[str, str, Any], WriteRow],
    any_text: Callable[[Any], str],
    any_number: Callable[[Any], int],
    thread_id: str,
    ns: str,
    rows: list[tuple[Any, ...]],
    with_head: bool = True,
) -> Found: ...
