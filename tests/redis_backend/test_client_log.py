"""The comparison of acknowledged with stored writes finds losses and changes."""

from collections.abc import Sequence
from typing import Any

import pytest

from client_log import Load, all_faults
from threadmark import Checkpoint, CheckpointTuple, ClosedError
from threadmark.memory import MemorySaver
from threadmark.model import Config


class _Forgetful(MemorySaver):
    """Acknowledges writes that it does not store."""

    def put(self, config: Config, checkpoint: Checkpoint, metadata: Any, *rest: Any, **options: Any) -> dict[str, Any]:
        if metadata["step"] != 2:
            return super().put(config, checkpoint, metadata, *rest, **options)
        return {"configurable": {**config["configurable"], "checkpoint_id": checkpoint["id"]}}


class _Tearing(MemorySaver):
    """Stores a part of a batch."""

    def put_writes(self, config: Config, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        super().put_writes(config, writes[1:], task_id, task_path)


class _Changing(MemorySaver):
    """Stores another value than the caller's."""

    def put(self, config: Config, checkpoint: Checkpoint, metadata: Any, *rest: Any, **options: Any) -> dict[str, Any]:
        changed: Any = {**checkpoint, "channel_values": {**checkpoint["channel_values"], "number": -1}}
        return super().put(config, changed, metadata, *rest, **options)


def _faults(saver: MemorySaver, *, may_lack: int = 0) -> list[str]:
    load = Load(saver, "load", 2)
    with load.running():
        load.wait_for(4)
    return all_faults(load.logs, saver, may_lack=may_lack)


def test_a_sound_saver_has_no_faults() -> None:
    assert _faults(MemorySaver()) == []


def test_a_lost_put_is_found() -> None:
    assert any("missing in the middle" in fault for fault in _faults(_Forgetful()))


def test_a_lost_end_is_found_unless_it_may_be_missing() -> None:
    saver = MemorySaver()
    load = Load(saver, "load", 2)
    with load.running():
        load.wait_for(4)
    newest: CheckpointTuple = next(iter(saver.list({"configurable": {"thread_id": load.logs[0].thread_id}})))
    saver.delete_checkpoint(newest.config)
    assert any("puts were acknowledged" in fault for fault in all_faults(load.logs, saver))
    assert all_faults(load.logs, saver, may_lack=1) == []


def test_a_torn_batch_is_found() -> None:
    assert any("not all" in fault for fault in _faults(_Tearing()))


def test_a_changed_value_is_found() -> None:
    assert any("other values" in fault for fault in _faults(_Changing()))


def test_an_error_of_a_writer_is_raised_where_it_is_waited_for() -> None:
    saver = MemorySaver()
    load = Load(saver, "load", 2)

    def close_at_work() -> None:
        with load.running():
            load.wait_for(1)
            saver.close()
            load.wait_for(10**9)

    with pytest.raises(ClosedError):
        close_at_work()
