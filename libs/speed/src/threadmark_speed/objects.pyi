from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

_Reader = TypeVar("_Reader")

class ObjectWriter:
    def __init__(
        self,
        reference: Callable[[Any], list[Any]],
        slots: Sequence[Any],
        is_state: Callable[[tuple[str, ...]], bool] | None = None,
    ) -> None: ...
    def __call__(self, value: Any) -> list[Any]: ...

class ObjectReader:
    def __init__(
        self,
        reference: Callable[[list[Any]], Any],
        cls: type,
        dictionary: Any,
        names: Iterable[str],
        slots: Iterable[tuple[Any, frozenset[str] | dict[str, Any] | None]] = (),
    ) -> None: ...
    def __call__(self, items: list[Any]) -> Any: ...

def hooks(
    mark_code: int,
    reader_class: type[_Reader],
    known: dict[bytes, _Reader],
    new_reader: Callable[[int, bytes], _Reader],
) -> tuple[Callable[[list[Any]], Any], Callable[[int, bytes], _Reader], Callable[[], int]]: ...
