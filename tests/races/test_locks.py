"""Everything at once on one thread of a Postgres database, and the report of segments that this left behind."""

from length import times
from lock_rounds import THREAD, Outcome, unexplained
from rounds import database_of, output_of
from threadmark import MemorySaver

SECONDS = times(3, at_length=600)


def test_nobody_waits_in_a_circle() -> None:
    with database_of("postgres") as database:
        output = output_of("lock_rounds.py", "--url", database, "--seconds", SECONDS, within=SECONDS + 180)
    assert "deadlocks: 0; failures: 0; problems found afterwards: 0" in output
    for operation in ("put_writes", "prune", "delete_thread", "rename_thread", "put_under_a_lease"):
        assert f"| {operation} | " in output


def test_a_segment_that_is_left_behind_is_reported_with_the_operations_around_it() -> None:
    outcomes = [
        Outcome("put_writes", 0.0, 0.1, "", "writes of task 1", "0.123"),
        Outcome("put_writes", 0.3, 0.1, "", "writes of task 1", "0.456"),
        Outcome("prune", 0.35, 0.1, ""),
        Outcome("history", 9.0, 0.1, ""),
    ]
    with MemorySaver() as saver:
        config = {"configurable": {"thread_id": THREAD, "checkpoint_ns": "", "checkpoint_id": "1"}}
        for mark in ("0.123", "0.456"):
            saver.put_writes(config, [("messages", f"{mark} " * 200)], "task 1")
        assert list(unexplained(saver, outcomes)) == []
        (report,) = unexplained(saver, outcomes[1:])
    described, *operations = report.splitlines()
    assert described.startswith("thread 'thread': nothing refers to segment ")
    assert "0.456 0.456" in described
    assert operations == [
        "    stored by 0.300 to 0.400 s: put_writes writes of task 1",
        "    near it 0.350 to 0.450 s: prune",
    ]
