from typing import Any, TypeVar

_Tuple = TypeVar("_Tuple", bound=tuple[Any, ...])

def rows_of_scalars(
    cls: type[_Tuple],
    record: tuple[int, str, str, bytes],
    special: dict[str, int],
    before: bytes,
    thread_id: str,
    ns: str,
    checkpoint_id: str | None,
    task_id: str,
    task_path: str,
    writes: object,
) -> list[_Tuple] | None: ...
