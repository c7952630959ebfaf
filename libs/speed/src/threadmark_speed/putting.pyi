from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeVar

_Tuple = TypeVar("_Tuple", bound=tuple[Any, ...])

def pack_fields(checkpoint: Mapping[str, Any]) -> bytes | None: ...
def pack_header(
    versions: dict[str, Any], values: dict[str, Any], plain: bytes, rest: tuple[str, bytes] | None
) -> bytes: ...
def are_plain(values: object, versions: object, new: object) -> bool: ...
def inherit(
    given: Mapping[str, Any],
    reads: list[str],
    new: Collection[str],
    versions: dict[str, Any],
    parent: Any,
    has_manifests: bool,
) -> tuple[dict[str, Any], list[str], bool]: ...
def scalar(value: object) -> bytes | None: ...
def literal(cls: type[_Tuple], value: object) -> _Tuple | None: ...
def write_rows(
    cls: type[_Tuple],
    recorded: int,
    thread_id: str,
    ns: str,
    checkpoint_id: str,
    task_id: str,
    written: Iterable[tuple[int, str, str, bytes]],
) -> list[_Tuple]: ...
