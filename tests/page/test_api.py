"""The answers of the page's server about threads and checkpoints, over a real socket."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from citus.nodes import ALSO, shared_nodes
from cli.langgraphs import graph, say, sqlite_place
from effects.graphs import Shop
from page.lived import FAULT, QUESTION, config_of, letters, lived_saver
from page.served import id_of, put, served
from postgres.cluster import shared
from redis_backend.processes import DURABLE, RedisProcess
from threadmark import MemorySaver, Saver, SaverProtocol, new_id
from threadmark_cli.opening import open_for_reading, url_of
from threadmark_cli.page import shapes
from threadmark_cli.page.answers import answer
from threadmark_langgraph import MemorySaver as Checkpointer
from threadmark_langgraph import SqliteSaver as SqliteCheckpointer
from threadmark_postgres import PostgresSaver
from threadmark_redis import RedisSaver
from threadmark_sqlite import SqliteSaver

ODD = "</script><script>alert(1)</script> \x00 /?&#% é 中 \ud800 ~2"


@dataclass
class Plan:
    goal: str
    steps: list[str]


@contextmanager
def asking(saver: SaverProtocol, **options: Any) -> Iterator[Any]:
    """Serve a saver, and yield a function that returns the answer of a route."""
    with served(saver, **options) as running, running.client() as client:

        def ask(route: str, expected: int = 200, /, **params: Any) -> Any:
            answer = client.get(f"/api/{route}?{_query(params)}")
            assert answer.status_code == expected, answer.text
            assert answer.headers["content-type"] == "application/json"
            return answer.json()

        ask.client = client  # type: ignore[attr-defined]  # for posts
        yield ask


def _query(params: dict[str, Any]) -> str:
    pairs = ((name, str(value).encode("utf-8", "surrogatepass")) for name, value in params.items())
    return "&".join(f"{name}=" + "".join(f"%{byte:02x}" for byte in value) for name, value in pairs)


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[Saver]:
    with SqliteSaver(tmp_path / "t.db", durability="normal") as saver:
        yield saver


@pytest.mark.parametrize("backend", ["memory", "sqlite", "postgres", "redis", *ALSO])
def test_every_route_answers_on_every_backend(backend: str, tmp_path: Path) -> None:
    if backend == "memory":
        with MemorySaver() as saver:
            _ask_everything(saver)
    elif backend == "sqlite":
        with SqliteSaver(tmp_path / "t.db", durability="normal") as saver:
            _ask_everything(saver)
    elif backend == "postgres":
        try:
            with PostgresSaver(shared().database("page_api")) as saver:
                _ask_everything(saver)
        finally:
            shared().execute("DROP DATABASE page_api WITH (FORCE)")
    elif backend == "citus":
        with PostgresSaver(shared_nodes().database("page_api")) as saver:
            _ask_everything(saver)
    else:
        with RedisProcess(DURABLE).start() as process, RedisSaver(process.url) as saver:
            _ask_everything(saver)


def _ask_everything(saver: SaverProtocol) -> None:
    first = put(saver, ODD, {"messages": ["one"], "plan": Plan("g", ["a"])})
    second = put(saver, ODD, {"messages": ["one", "two"], "plan": Plan("g", ["a", "b"])}, first)
    saver.put_writes(second, [("messages", ["three"]), ("__interrupt__", "sure?")], "task")
    put(saver, ODD, {"n": 1}, ns="sub")
    ids = id_of(first), id_of(second)
    with asking(saver, write=True) as ask:
        (thread,) = ask("threads", count=1)["threads"]
        assert (thread["id"], thread["status"], thread["checkpoints"]) == (ODD, "interrupted", 3)
        assert ask("thread", thread=ODD)["namespaces"] == ["", "sub"]
        page = ask("history", thread=ODD, ns="", limit=1)
        assert [entry["id"] for entry in page["entries"]] == [ids[1]]
        (older,) = ask("history", thread=ODD, ns="", limit=1, cursor=page["cursor"])["entries"]
        assert older["id"] == ids[0]
        tree = ask("tree", thread=ODD)
        assert tree["namespaces"] == ["", "sub"]
        assert [node[1] for node in tree["nodes"] if node[0] == 0] == [ids[1], ids[0]]
        shown = ask("checkpoint", thread=ODD, id=ids[0])
        assert (shown["next_ids"], shown["config"], shown["problem"]) == ([ids[1]], first, None)
        newest = ask("checkpoint", thread=ODD)
        assert [(each["channel"], each["kind"]) for each in newest["writes"]] == [
            ("__interrupt__", "interrupt"),
            ("messages", "write"),
        ]
        channels = {each["name"]: each["node"] for each in newest["channels"]}
        assert channels["plan"]["name"].endswith(":Plan")
        assert [(name, step) for name, _, step in channels["plan"]["entries"]] == [
            ("goal", ".goal"),
            ("steps", ".steps"),
        ]
        assert ask("value", thread=ODD, id=ids[1], path="plan.steps[1]") == {"t": "str", "v": "b", "n": 1}
        changes = ask("diff", thread=ODD, b=ids[1])["changes"]
        assert [(each["path"], each["kind"]) for each in changes] == [
            ("messages[1]", "added"),
            ("plan.steps[1]", "added"),
        ]
        assert ask("blame", thread=ODD, path="messages[0]")["entry"]["id"] == ids[0]
        assert ask("blame", thread=ODD, path="messages[9]") is None
        assert [each["text"] for each in ask("search", thread=ODD, text="THREE")["matches"]] == ["three"]
        body = {"thread": ODD, "ns": "", "id": ids[0]}
        forked = _posted(ask, "fork", {**body, "values": {"messages": ["other"]}})
        assert ask("checkpoint", thread=ODD, id=id_of(forked))["parent"] == ids[0]
        restored = _posted(ask, "restore", {**body, "id": ids[1]})
        assert ask("thread", thread=ODD)["newest"] == id_of(restored)
        _posted(ask, "fork", {**body, "as_thread": "another"})
        assert ask("thread", thread="another")["id"] == "another"


def _posted(ask: Any, route: str, body: dict[str, Any]) -> dict[str, Any]:
    client: httpx.Client = ask.client
    answer = client.post(f"/api/{route}", content=json.dumps(body), headers={"content-type": "application/json"})
    assert answer.status_code == 200, answer.text
    config: dict[str, Any] = answer.json()["config"]
    return config


def test_about_says_which_database(saver: Saver) -> None:
    with asking(saver, url="sqlite:///t.db") as ask:
        about = ask("about")
    assert (about["backend"], about["url"], about["write"]) == ("SqliteSaver", "sqlite:///t.db", False)


def test_values_keep_their_types_and_their_exactness(saver: Saver) -> None:
    moment = datetime(2026, 11, 20, 12, tzinfo=UTC)
    values = {
        "none": None, "bool": True, "int": 10**400, "float": float("nan"), "bytes": b"\x00" * 100, "text": ODD,
        "tuple": (1,), "set": {1}, "when": moment, "keys": {"a b": 1, (1, 2): 2, "__x": 3, "ok": 4},
    }  # fmt: skip
    put(saver, "t", values)
    with asking(saver) as ask:
        nodes = {each["name"]: each["node"] for each in ask("checkpoint", thread="t")["channels"]}
    assert nodes["none"] == {"t": "none"}
    assert nodes["bool"] == {"t": "bool", "v": True}
    assert nodes["int"] == {"t": "int", "v": str(10**400)}
    assert nodes["float"] == {"t": "float", "v": "nan"}
    assert nodes["bytes"] == {"t": "bytes", "n": 100, "v": "00" * 64}
    assert nodes["text"] == {"t": "str", "v": ODD, "n": len(ODD)}
    assert nodes["tuple"] == {"t": "tuple", "n": 1, "offset": 0, "items": [{"t": "int", "v": "1"}]}
    assert nodes["set"]["t"] == "set"
    assert nodes["when"] == {"t": "other", "name": "datetime", "v": "2026-11-20T12:00:00+00:00"}
    assert [step for _, _, step in nodes["keys"]["entries"]] == ['["a b"]', None, '["__x"]', ".ok"]


def test_a_value_that_python_cannot_write_leaves_the_others_to_be_seen(saver: Saver) -> None:
    namespace = SimpleNamespace(a=1)
    namespace.__dict__[2] = "two"  # type: ignore[index]  # exactly what is tested
    values = {
        "fraction": Fraction(10**5000, 3), "range": range(10**5000), "namespace": namespace, "good": "x",
        "set": {10**5000, "needle"},
    }  # fmt: skip
    put(saver, "t", values)
    with asking(saver) as ask:
        nodes = {each["name"]: each["node"] for each in ask("checkpoint", thread="t")["channels"]}
    assert nodes["good"]["v"] == "x"
    assert nodes["fraction"]["v"] == nodes["range"]["v"] == "<too many digits to write>"
    assert [entry[::2] for entry in nodes["namespace"]["entries"]] == [["a", ".a"], ["2", None]]
    assert [match.path for match in saver.search("t", "needle").matches] == ["set"]


def test_large_values_are_cut_and_read_on_demand(saver: Saver) -> None:
    values = {"texts": [f"{number}" * 5000 for number in range(3000)], "deep": [[[[1]]]], "long": "x" * 300_000}
    put(saver, "t", values)
    with asking(saver) as ask:
        answer = ask.client.get("/api/checkpoint", params={"thread": "t"})
        assert len(answer.content) < 1_000_000
        nodes = {each["name"]: each["node"] for each in answer.json()["channels"]}
        assert nodes["texts"]["n"] == 3000
        assert 0 < len(nodes["texts"]["items"]) <= 50
        assert nodes["deep"]["items"][0]["items"][0] == {"t": "list", "n": 1}
        assert nodes["long"]["n"] == 300_000
        assert len(nodes["long"]["v"]) == 2000
        some = ask("value", thread="t", path="texts", offset=2998, limit=50)
        assert (some["n"], some["offset"], [each["v"][:4] for each in some["items"]]) == (3000, 2998, ["2998", "2999"])
        assert ask("value", thread="t", path="deep[0][0]")["items"][0]["items"] == [{"t": "int", "v": "1"}]
        text = ask("value", thread="t", path="long", offset=299_990, limit=100)
        assert text == {"t": "str", "v": "x" * 10, "n": 300_000, "offset": 299_990}
        assert len(ask("value", thread="t", path="long", limit=1_000_000)["v"]) == 300_000


def test_a_pending_write_is_read_on_demand(saver: Saver) -> None:
    config = put(saver, "t", {"n": 1})
    saver.put_writes(config, [("n", {"inner": ["a", "b"]})], "task")
    with asking(saver) as ask:
        assert ask("value", thread="t", write=0, path=".inner[1]")["v"] == "b"
        assert ask("value", thread="t", write=0)["t"] == "dict"
        for wrong in ({"write": 1}, {"write": 0, "path": ".nope"}):
            assert ask("value", 404, thread="t", **wrong)["error"]["kind"] == "not_found"


def test_the_first_checkpoint_differs_from_nothing(saver: Saver) -> None:
    first = put(saver, "t", {"a.b": 1})
    with asking(saver) as ask:
        found = ask("diff", thread="t", b=id_of(first))
    assert found["a"] is None
    assert [(each["path"], each["kind"], each["after"]["v"]) for each in found["changes"]] == [
        ('["a.b"]', "added", "1")
    ]


@pytest.mark.parametrize(
    ("route", "params", "status", "kind"),
    [
        ("thread", {"thread": "none"}, 404, "not_found"),
        ("checkpoint", {"thread": "none"}, 404, "not_found"),
        ("checkpoint", {"thread": "t", "id": "none"}, 404, "not_found"),
        ("value", {"thread": "t", "path": "none"}, 404, "not_found"),
        ("diff", {"thread": "t", "b": "none"}, 404, "not_found"),
        ("nothing", {}, 404, "not_found"),
        ("thread", {}, 400, "bad_request"),
        ("value", {"thread": "t", "path": "["}, 400, "bad_request"),
        ("threads", {"limit": "-1"}, 400, "bad_request"),
        ("threads", {"limit": 10**9}, 400, "bad_request"),
        ("threads", {"status": "none"}, 400, "bad_request"),
        ("threads", {"sort": "none"}, 400, "bad_request"),
        ("threads", {"cursor": "none"}, 400, "bad_request"),
        ("threads", {"metadata": "[]"}, 400, "bad_request"),
        ("threads", {"metadata": "{"}, 400, "bad_request"),
        ("history", {"thread": "t", "cursor": "none"}, 400, "bad_request"),
    ],
)
def test_what_is_wrong_is_said(saver: Saver, route: str, params: dict[str, Any], status: int, kind: str) -> None:
    put(saver, "t", {"n": 1})
    with asking(saver) as ask:
        error = ask(route, status, **params)["error"]
    assert error["kind"] == kind
    assert error["message"]
    assert "Traceback" not in error["message"]


def test_odd_addresses_are_refused(saver: Saver) -> None:
    with asking(saver) as ask:
        for query in ("thread=%ff", "thread=a&thread=b", "&".join(f"p{number}=1" for number in range(40))):
            answer = ask.client.get(f"/api/thread?{query}")
            assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "bad_request")


def test_damage_is_an_answer_and_leaves_the_rest_to_be_seen(saver: Saver, tmp_path: Path) -> None:
    config = put(saver, "t", {"text": "4711" * 1_000, "a.b": "sound", "n": 1})
    saver.put_writes(config, [("n", 2)], "task")
    saver.close()
    file = tmp_path / "t.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        assert connection.execute("UPDATE threadmark_segment SET data = x'00'").rowcount == 1
    with SqliteSaver(file) as damaged, asking(damaged) as ask:
        shown = ask("checkpoint", thread="t")
        assert shown["problem"]["kind"] == "damaged"
        nodes = {each["name"]: each["node"] for each in shown["channels"]}
        assert nodes["a.b"] == {"t": "str", "v": "sound", "n": 5}
        assert nodes["n"] == {"t": "int", "v": "1"}
        assert (nodes["text"]["t"], nodes["text"]["name"]) == ("unread", "damaged")
        assert nodes["text"]["v"]
        (write,) = shown["writes"]
        assert (write["channel"], write["kind"], write["value"]["t"]) == ("n", "write", "unread")
        error = ask("value", 500, thread="t", path="text")["error"]
        assert error["kind"] == "failed"
        assert "t" in error["message"]


def test_a_channel_that_is_stored_as_changes_is_named(saver: Saver) -> None:
    config = put(saver, "t", {"n": 1})
    checkpoint: Any = {
        "v": 4,
        "id": new_id(),
        "ts": "2026-11-22T00:00:00+00:00",
        "channel_values": {"n": 1},
        "channel_versions": {"n": 1, "d": 2, "empty": 2, "branch:to:x": 2},
        "versions_seen": {},
        "updated_channels": None,
    }
    saver.put(config, checkpoint, {"source": "loop", "counters_since_delta_snapshot": {"d": [1, 1]}}, {})
    with asking(saver) as ask:
        nodes = {each["name"]: each["node"] for each in ask("checkpoint", thread="t")["channels"]}
    assert nodes.keys() == {"n", "d"}
    assert nodes["d"] == {"t": "changes", "name": "kept as changes", "n": 0, "offset": 0, "entries": []}


def test_a_delta_channel_is_read_as_its_snapshot_and_its_changes() -> None:
    with Checkpointer() as checkpointer:
        agent = letters(checkpointer)
        for number in range(5):
            agent.update_state(config_of("t"), {"log": [f"line {number}"]}, "write")
        with asking(checkpointer.saver) as ask:
            newest = [_delta(ask, entry["id"]) for entry in ask("history", thread="t")["entries"]]
            snapshots = [node for node in newest if node["t"] == "list"]
            changes = [node for node in newest if node["t"] == "changes"]
            assert snapshots
            assert any(node["entries"][0][0] == "snapshot" for node in changes)
            assert all(node == ask("value", thread="t", id=node.pop("id"), path="log") for node in changes)
            assert ask("value", thread="t", id=snapshots[0]["id"], path="log[0]")["v"] == "line 0"
            assert ask("value", 404, thread="t", path="log[0]")["error"]["kind"] == "not_found"


def test_damage_before_a_delta_channel_leaves_the_checkpoint_to_be_seen(tmp_path: Path) -> None:
    file = tmp_path / "t.db"
    with SqliteCheckpointer.from_conn_string(str(file)) as checkpointer:
        agent = letters(checkpointer)
        for number in range(2):
            agent.update_state(config_of("t"), {"log": [f"{number}" * 3_000], "draft": "kept"}, "write")
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE threadmark_write SET value = x'00'")
    with SqliteSaver(file) as damaged, asking(damaged) as ask:
        entry = ask("history", thread="t")["entries"][0]
        channels = {each["name"]: each["node"] for each in ask("checkpoint", thread="t", id=entry["id"])["channels"]}
        assert channels["draft"]["v"] == "kept"
        assert channels["log"] == {"t": "changes", "name": "kept as changes", "n": None}
        assert ask("value", 500, thread="t", path="log")["error"]["kind"] == "failed"


def _delta(ask: Any, checkpoint_id: str) -> dict[str, Any]:
    (found,) = [each for each in ask("checkpoint", thread="t", id=checkpoint_id)["channels"] if each["name"] == "log"]
    assert found["delta"]
    return {**found["node"], "id": checkpoint_id}


def test_what_a_thread_waits_for_names_the_node_within_its_subgraph() -> None:
    with lived_saver() as saver, asking(saver) as ask:
        (question,) = ask("waiting", thread="asking")["tasks"]
        assert (question["kind"], question["nodes"], question["ns"]) == ("interrupt", ["review", "confirm"], "")
        assert QUESTION in json.dumps(question["value"])
        (error,) = ask("waiting", thread="failing")["tasks"]
        assert (error["kind"], error["nodes"], error["step"]) == ("error", ["print"], 0)
        assert FAULT in json.dumps(error["value"])
        assert ask("waiting", thread="finished") == ask("waiting", thread="none") == {"tasks": []}


def test_what_comes_next_is_read_once_until_the_thread_changes() -> None:
    with MemorySaver() as memory:
        first = put(memory, "t", {"n": 1})
        second = put(memory, "t", {"n": 2}, first)
        saver = _CountsTrees(memory)
        with asking(saver) as ask:  # type: ignore[arg-type]  # it passes everything on
            for _ in range(3):
                assert ask("checkpoint", thread="t", id=id_of(first))["next_ids"] == [id_of(second)]
                assert ask("checkpoint", thread="t", id=id_of(second))["next_ids"] == []
            assert saver.trees == 1
            third = put(memory, "t", {"n": 3}, first)
            assert ask("checkpoint", thread="t", id=id_of(first))["next_ids"] == [id_of(third), id_of(second)]
            memory.delete_checkpoint(second)
            assert ask("checkpoint", thread="t", id=id_of(first))["next_ids"] == [id_of(third)]
            assert saver.trees == 3


class _CountsTrees:
    """A saver that counts how often a whole tree is read."""

    def __init__(self, saver: Saver) -> None:
        self._saver = saver
        self.trees = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._saver, name)

    def without_classes(self) -> Any:
        return self

    async def atree(self, thread: str) -> Any:
        self.trees += 1
        return await self._saver.atree(thread)


def test_numbers_that_json_has_not_leave_the_others_as_they_are() -> None:
    sent = answer({"large": 1e300, "none": float("nan"), "least": -float("inf")})
    assert json.loads(bytes(sent.body)) == {"large": 1e300, "none": "nan", "least": "-inf"}


def test_a_lost_database_is_an_answer(saver: Saver) -> None:
    put(saver, "t", {"n": 1})
    with asking(saver) as ask:
        saver.close()
        assert ask("threads", 500)["error"]["kind"] == "failed"


def test_an_owner_sees_only_what_is_theirs(saver: Saver) -> None:
    saver.create_thread("adas", owner="ada")
    saver.create_thread("bobs", owner="bob")
    with asking(saver.for_owner("ada")) as ask:
        assert [each["id"] for each in ask("threads")["threads"]] == ["adas"]
        ask("thread", 404, thread="bobs")


def test_a_stored_class_is_never_made(saver: Saver) -> None:
    put(saver, "t", {"plan": Plan("g", [])})
    made: list[Any] = []
    original = Plan.__new__
    try:
        Plan.__new__ = lambda cls, *_: made.append(cls) or original(cls)  # type: ignore[method-assign,func-returns-value]
        with asking(saver) as ask:
            assert ask("checkpoint", thread="t")["channels"][0]["node"]["t"] == "object"
    finally:
        del Plan.__new__
    assert made == []


def test_langgraphs_own_database_is_shown_and_left_as_it_is(tmp_path: Path) -> None:
    place = sqlite_place(tmp_path)
    with place.open() as theirs:
        say(graph(theirs), "theirs", "hello")
    before = place.content()
    with open_for_reading(url_of(place.url), {}) as saver, asking(saver, write=True) as ask:
        assert [each["id"] for each in ask("threads", count=1)["threads"]] == ["theirs"]
        newest = ask("history", thread="theirs", limit=1)["entries"][0]
        shown = ask("checkpoint", thread="theirs", ns=newest["ns"], id=newest["id"])
        assert "messages" in {each["name"] for each in shown["channels"]}
        assert ask("value", thread="theirs", path="messages[0].content")["v"] == "hello"
        assert ask("search", thread="theirs", text="hello")["matches"]
        assert ask("tree", thread="theirs")["nodes"]
        client: httpx.Client = ask.client
        refused = client.post("/api/restore", json={"thread": "theirs", "ns": "", "id": newest["id"]})
        assert (refused.status_code, refused.json()["error"]["kind"]) == (403, "refused")
    assert place.content() == before


def test_a_tree_is_bounded_and_says_how_much_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "MOST_NODES", 3)
    with MemorySaver() as saver:
        root = put(saver, "thread", {"n": 0})
        old = [root]
        for number in range(1, 4):
            old.append(put(saver, "thread", {"n": number}, old[-1]))
        forks = [put(saver, "thread", {"n": 10 + number}, root) for number in range(3)]
        with asking(saver) as ask:
            tree = ask("tree", thread="thread")
    assert tree["left_out"] == 4
    assert [node[1] for node in tree["nodes"]] == [id_of(fork) for fork in reversed(forks)]
    assert max(node[6] for node in tree["nodes"]) == len(tree["branches"]) - 1 == 2


def test_effects_come_with_their_steps_and_their_namespaces_do_not(saver: Saver) -> None:
    shop = Shop(saver)
    shop.run(config_of("order"), rounds=2)
    sub = put(saver, "order", {"n": 1}, ns="effects:11112222-3333-4444-5555-666677778888")  # of a node of that name
    with asking(saver) as ask:
        thread = ask("thread", thread="order")
        assert thread["namespaces"] == ["", sub["configurable"]["checkpoint_ns"]]
        entries = ask("history", thread="order")["entries"]
        assert len(entries) == thread["checkpoints"] == len(ask("tree", thread="order")["nodes"])
        asked = [entry for entry in entries if entry["effects"]]
        assert [entry["effects"] for entry in asked] == [["done"], ["done"]]
        (effect,) = ask("checkpoint", thread="order", id=asked[0]["id"])["effects"]
        assert (effect["name"], effect["state"], effect["node"]) == ("charge", "done", "charge")
        assert effect["key"] == shop.receiver.keys[1]
        assert ask("checkpoint", thread="order")["effects"] == []
        ledger = next(each for each in saver.history("order", ns=None, limit=100).entries if each.source == "effect")
        place = {"thread_id": "order", "checkpoint_ns": ledger.ns, "checkpoint_id": ledger.id}
        checkpoint: Any = {name: {} for name in ("channel_values", "channel_versions", "versions_seen")}
        checkpoint |= {"v": 4, "id": new_id(), "ts": ""}
        saver.put({"configurable": place}, checkpoint, {"source": "effect", "step": 1}, {})
        assert "effects cannot be read" in ask("checkpoint", thread="order")["problem"]["problem"]
        assert {len(entry["effects"]) for entry in ask("history", thread="order")["entries"]} == {0}
