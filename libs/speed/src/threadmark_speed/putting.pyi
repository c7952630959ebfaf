from collections.abc import Collection
from typing import Any, TypeVar

_Tuple = TypeVar("_Tuple", bound=tuple[Any, ...])

def lay_out(
    cls: type[_Tuple],
    provided: dict[str, Any],
    reads: list[str],
    new: Collection[str],
    versions: dict[str, Any],
    parent: Any,
    has_manifests: bool,
    plain: bytes,
    rest: tuple[str, bytes] | None,
    is_fast: bool,
) -> tuple[dict[str, Any], list[str], bool, bytes | None]: ...
