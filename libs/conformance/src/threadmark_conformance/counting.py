"""A store around another store that counts its reads: questions, rows and bytes."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from threadmark.program import Program
from threadmark.store.contract import Found, Store


class Reads:
    """The counts so far."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the reads."""
        self.questions: list[str] = []
        self.writes = 0
        self.segments = 0
        self.bytes = 0
        """Those of segments."""

    def see(self, question: str, answer: Any) -> None:
        """Count an answer."""
        self.questions.append(question)
        if question == "find" and answer is not None:
            self._see_found([answer])
        elif question == "newest":
            self._see_found(answer.values())
        elif question == "writes":
            self.writes += len(answer)
        elif question == "segments":
            self._see_segments(answer)
        elif question == "segments_of":
            for segments in answer.values():
                self._see_segments(segments)

    def _see_found(self, every: Iterable[Found]) -> None:
        for found in every:
            self.writes += len(found.writes)
            self._see_segments(found.segments)

    def _see_segments(self, segments: Mapping[bytes, bytes]) -> None:
        self.segments += len(segments)
        self.bytes += sum(map(len, segments.values()))


def counted(store: Store, reads: Reads) -> Store:
    """Return a store that answers like another one, and counts its answers."""
    return cast("Store", _CountedStore(store, reads))  # it has all attributes of the other store


class _CountedStore:
    def __init__(self, store: Store, reads: Reads) -> None:
        self._store = store
        self._reads = reads

    def __getattr__(self, name: str) -> Any:
        method: Callable[..., Program[Any]] = getattr(self._store, name)

        def ask(*arguments: Any, **options: Any) -> Program[Any]:
            answer = yield from method(*arguments, **options)
            self._reads.see(name, answer)
            return answer

        return ask
