from collections.abc import Callable, Sequence
from typing import Any

from threadmark.store.contract import CheckpointRow, Found, Outline, WriteRow

def write_rows(columns: list[tuple[Any, ...]], reference: Callable[[Any], WriteRow]) -> list[WriteRow]: ...
def writes_of(
    ns: str, checkpoint_id: str, columns: list[tuple[Any, ...]], reference: Callable[[str, str, Any], WriteRow]
) -> list[WriteRow]: ...
def outline(thread_id: str, columns: Sequence[Any], reference: Callable[[str, Any], Outline]) -> Outline: ...
def checkpoint_row(
    thread_id: str, columns: Sequence[Any], reference: Callable[[str, Any], Outline]
) -> CheckpointRow: ...
def found_of(
    thread_id: str,
    ns: str,
    rows: list[tuple[Any, ...]],
    with_head: bool,
    any_outline: Callable[[str, Any], Outline],
    any_write_of: Callable[[str, str, Any], WriteRow],
    any_text: Callable[[Any], str],
    any_number: Callable[[Any], int],
) -> Found: ...
