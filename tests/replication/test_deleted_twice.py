"""A deletion that was begun on one side and done again on the other one, because the writes had moved between."""

from replication.actor import Newest, put_arguments
from replication.sides import TERM, copied_both_ways, pair_in_memory, side, summaries
from threadmark.replication.copying import copy_thread
from threadmark.replication.playing import play_exchange

THREAD = "thread"


def test_what_is_begun_after_it_stays() -> None:
    old, new = pair_in_memory()
    before, after = side(old), side(new, "secondary")
    old.put(*put_arguments(THREAD, "", Newest("1", (1,)), ""))
    copied_both_ways(before, after)
    for saver in (old, new):  # the old side had done it when the new one refused its copy
        assert saver.delete_thread(THREAD)
    play_exchange(copy_thread(after, before, THREAD, TERM))
    new.put(*put_arguments(THREAD, "", Newest("2", (2,)), ""))
    copied_both_ways(before, after)
    assert [item.checkpoint["id"] for item in new.list({"configurable": {"thread_id": THREAD}})] == ["2"]
    assert summaries(before) == summaries(after)
