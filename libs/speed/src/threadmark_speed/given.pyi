from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

_Tuple = TypeVar("_Tuple", bound=tuple[Any, ...])
_Metadata = TypeVar("_Metadata", bound=dict[str, Any])
_Encoded: TypeAlias = tuple[str, bytes]

def usual_config(cls: type[_Tuple], config: object) -> _Tuple | None: ...
def names_nobody(config: object, metadata: object, key: str) -> bool: ...
def usual_metadata(
    cls: type[_Metadata], left_out: frozenset[str], dumps: Callable[[Any], bytes], config: object, metadata: object
) -> _Metadata | None: ...
def are_usual_writes(writes: object, special: str) -> bool: ...
def encoded_writes(
    writes: object,
    special: dict[str, int],
    tag: str,
    encode: Callable[[Any, str, Any], _Encoded],
    serde: object,
) -> tuple[dict[int, tuple[str, _Encoded]], int] | None: ...
