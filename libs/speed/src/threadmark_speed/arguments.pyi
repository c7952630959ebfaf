from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

_Tuple = TypeVar("_Tuple", bound=tuple[Any, ...])
_Writes = TypeVar("_Writes")
_Metadata = TypeVar("_Metadata", bound=dict[str, Any])
_Encoded: TypeAlias = tuple[str, bytes]

def plain_config(cls: type[_Tuple], config: object) -> _Tuple | None: ...
def plain_checkpoint(cls: type[_Tuple], checkpoint: object, new: object) -> _Tuple | None: ...
def plain_metadata(
    cls: type[_Metadata], left_out: frozenset[str], dumps: Callable[[Any], bytes], config: object, metadata: object
) -> _Metadata | None: ...
def plain_writes(writes: _Writes) -> _Writes | None: ...
def encoded_writes(
    special: dict[str, int],
    tag: str,
    encode: Callable[[Any, str, Any], _Encoded],
    serde_class: type,
    serde: object,
    writes: object,
) -> tuple[dict[int, tuple[str, _Encoded]], int] | None: ...
