"""An operator's script: it has the database and Threadmark, and nothing of the application that fills it."""

from pathlib import Path

from children import child, finished

_APPLICATION = """
import sys
import threadmark
sys.path.insert(0, sys.argv[1])
import shop
with threadmark.open(sys.argv[2]) as saver:
    config = {"configurable": {"thread_id": "customer", "checkpoint_ns": ""}}
    for number in (1, 2, 3):
        values = {"order": shop.Order("a parcel", number), "size": shop.Size.LARGE}
        checkpoint = {"v": 4, "id": threadmark.new_id(), "ts": "", "channel_values": values,
                      "channel_versions": {"order": number, "size": number}, "versions_seen": {}}
        config = saver.put(config, checkpoint, {"step": number}, {"order": number, "size": number})
        saver.put_writes(config, [("order", shop.Order("another", number))], "task")
    verified = saver.verify(decode=True)
    assert (verified.problems, verified.unreadable) == ([], []), verified
"""

_SHOP = """
import dataclasses, enum
class Size(enum.Enum):
    LARGE = 1
@dataclasses.dataclass
class Order:
    what: str
    number: int
"""

_OPERATOR = """
import sys
import threadmark
with threadmark.open(sys.argv[1]) as saver:
    verified = saver.verify()
    assert tuple(verified) == (1, 3, 3, [], []), verified
    decoded = saver.verify(decode=True)
    assert decoded.problems == [], decoded
    assert [problem.kind for problem in decoded.unreadable] == ["unreadable"] * 3, decoded
    assert "shop" in decoded.unreadable[0].problem
    assert saver.stats().problems == []
    assert saver.prune(["customer"]).checkpoints == 2
    saver.copy_thread("customer", "copy")
    saver.delete_thread("customer")
    assert saver.verify().problems == []
    assert [ref.thread_id for ref in saver.list_checkpoint_refs()] == ["copy"]
assert not {"shop", "langgraph", "langchain_core", "threadmark_langgraph"} & set(sys.modules)
"""


def test_an_operators_script_needs_nothing_of_the_application(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(_SHOP)
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    finished(child(_APPLICATION, tmp_path, url))
    finished(child(_OPERATOR, url))
