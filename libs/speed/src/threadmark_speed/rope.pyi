from collections.abc import Callable, Collection, Sequence

from threadmark.format.rope.packed import Deduplicated
from threadmark.format.rope.reuse import Source

def deduplicate(
    data: bytes,
    sources: Sequence[Source],
    key: Callable[[bytes], bytes] = ...,
    *,
    beside: Collection[bytes] = (),
) -> Deduplicated: ...
def patch(data: bytes, source: Source | None, key: Callable[[bytes], bytes] = ...) -> Deduplicated: ...
