"""The calls of an engine to its saver, as lines of JSON, to be repeated on any saver later."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Command, Interrupt

from threadmark import MemorySaver
from threadmark_langgraph import Checkpointer

_SNAPSHOT, _INTERRUPT, _ANSWER = "a delta snapshot of", "an interrupt", "a command that answers"


class Recorder(Checkpointer):
    """A checkpointer that keeps a line for each of the engine's calls that store something."""

    def __init__(self) -> None:
        super().__init__(MemorySaver())
        self.lines: list[str] = []

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        self._keep("put", config, checkpoint, metadata, new_versions)
        return super().put(config, checkpoint, metadata, new_versions)

    def put_writes(self, config: Any, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        self._keep("put_writes", config, list(writes), task_id, task_path)
        super().put_writes(config, writes, task_id, task_path)

    def _keep(self, method: str, config: Any, *arguments: Any) -> None:
        configurable = config["configurable"]
        location = {key: configurable.get(key) for key in ("checkpoint_ns", "checkpoint_id")}
        metadata = {key: value for key, value in config.get("metadata", {}).items() if key == "run_id"}
        kept = {"configurable": location, "metadata": metadata}
        self.lines.append(json.dumps(_plain([method, kept, *arguments]), separators=(",", ":")))


def save(path: Path, recordings: Sequence[Sequence[str]]) -> None:
    """Keep some recordings, an empty line between two."""
    text = "\n\n".join("\n".join(lines) for lines in recordings)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def load(path: Path) -> list[list[str]]:
    """The recordings that `save` has written."""
    return [lines.splitlines() for lines in gzip.decompress(path.read_bytes()).decode().split("\n\n")]


def play(lines: Sequence[str], saver: Checkpointer, thread_id: str) -> None:
    """Repeat the recorded calls on a saver, for a thread of this name."""
    for line in lines:
        method, config, *arguments = _living(json.loads(line))
        config["configurable"]["thread_id"] = thread_id
        getattr(saver, method)(config, *arguments)


def _plain(value: Any) -> Any:
    if isinstance(value, _DeltaSnapshot):
        return {_SNAPSHOT: _plain(value.value)}
    if isinstance(value, Interrupt):
        return {_INTERRUPT: [value.value, value.id]}
    if isinstance(value, Command):
        return {_ANSWER: value.resume}
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _living(value: Any) -> Any:
    if isinstance(value, list):
        return [_living(item) for item in value]
    if not isinstance(value, dict):
        return value
    if _SNAPSHOT in value:
        return _DeltaSnapshot(_living(value[_SNAPSHOT]))
    if _ANSWER in value:
        return Command(resume=value[_ANSWER])
    if _INTERRUPT in value:
        question, interrupt_id = value[_INTERRUPT]
        return Interrupt(value=question, id=interrupt_id)
    return {key: _living(item) for key, item in value.items()}
