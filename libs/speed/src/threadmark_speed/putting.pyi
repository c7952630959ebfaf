from collections.abc import Collection, Iterable
from typing import Any, TypeVar

_Tuple = TypeVar("_Tuple", bound=tuple[Any, ...])

def pack_header(
    versions: dict[str, Any], values: dict[str, Any], plain: bytes, rest: tuple[str, bytes] | None
) -> bytes: ...
def inherit(
    given: dict[str, Any],
    reads: list[str],
    new: Collection[str],
    versions: dict[str, Any],
    parent: Any,
    has_manifests: bool,
) -> tuple[dict[str, Any], list[str], bool]: ...
def lay_out(
    cls: type[_Tuple],
    given: dict[str, Any],
    reads: list[str],
    new: Collection[str],
    versions: dict[str, Any],
    parent: Any,
    has_manifests: bool,
    plain: bytes,
    rest: tuple[str, bytes] | None,
    is_fast: bool,
) -> tuple[dict[str, Any], list[str], bool, bytes | None]: ...
def scalar(value: object) -> bytes | None: ...
def literal(cls: type[_Tuple], value: object) -> _Tuple | None: ...
def checkpoint_row(cls: type[_Tuple], outline: tuple[Any, ...], header: bytes, run_id: str | None) -> _Tuple: ...
def write_rows(
    cls: type[_Tuple],
    thread_id: str,
    ns: str,
    checkpoint_id: str,
    task_id: str,
    written: Iterable[tuple[int, str, str, bytes]],
) -> list[_Tuple]: ...
