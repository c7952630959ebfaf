"""The commands that read, on every backend: in a pipe, as JSON, and on a terminal, with the same content."""

import re
from datetime import datetime
from typing import Any

import pytest

import threadmark
from cli.running import Ran, in_pipe, in_terminal, json_lines
from threadmark_cli.describing import short_ns
from threadmark_cli.opening import url_of

GRAPH = """\
●  1f1e4c77  2026-11-20 09:47:58  answer  messages  (newest)
●  1f1e4c76  2026-11-20 09:47:20  approve  refund, notes
●  1f1e4c66  2026-11-20 09:40:29  propose  policy, refund, notes  (interrupt)  (resume)
●  1f1e4c65  2026-11-20 09:39:47  update  policy, notes
│ ●  1f1e4c43  2026-11-20 09:24:47  answer  messages  (head)
│ ●  1f1e4c42  2026-11-20 09:24:09  carrier  messages, notes
│ ●  1f1e4c40  2026-11-20 09:23:34  propose  messages, policy
│ ●  1f1e4c3f-5df3-6e01  2026-11-20 09:22:52  lookup  messages, order
│ │ ●  1f1e4c3f-5df3-6e00  2026-11-20 09:22:52  lookup:task: choose  order  (newest)
│ │ ●  1f1e4c3e  2026-11-20 09:22:22  lookup:task: search  candidates
│ │ ●  1f1e4c3d-1836-6184  2026-11-20 09:21:51  lookup:task: loop  messages, order
│ │ ●  1f1e4c3d-1836-6183  2026-11-20 09:21:51  lookup:task: input
│ ├─╯
│ ●  1f1e4c3d-1836-6181  2026-11-20 09:21:51  loop  messages
│ ●  1f1e4c3d-1836-6180  2026-11-20 09:21:51  input
│ ●  1f1e4c38  2026-11-20 09:19:51  answer  messages
│ ●  1f1e4c37  2026-11-20 09:19:13  approve  refund, notes
├─╯
●  1f1e4c27  2026-11-20 09:12:22  propose  policy, refund, notes  (interrupt)  (resume)
●  1f1e4c26-5542-6e01  2026-11-20 09:11:40  lookup  messages, order
│ ●  1f1e4c26-5542-6e00  2026-11-20 09:11:40  lookup:task: choose  order  (newest)
│ ●  1f1e4c25  2026-11-20 09:11:10  lookup:task: search  candidates
│ ●  1f1e4c24-0f85-6185  2026-11-20 09:10:39  lookup:task: loop  messages
│ ●  1f1e4c24-0f85-6184  2026-11-20 09:10:39  lookup:task: input
├─╯
●  1f1e4c24-0f85-6182  2026-11-20 09:10:39  loop  messages
●  1f1e4c24-0f85-6181  2026-11-20 09:10:39  input
"""

THREAD = "support-42"
BEFORE_THE_FORK = "1f1e4c27"
ESCAPES = re.compile("\x1b\\[[0-9;]*m")

COMMANDS: dict[str, tuple[str, ...]] = {
    "threads": ("threads",),
    "threads of a status": ("threads", "--status", "interrupted"),
    "log": ("log", THREAD),
    "log --graph": ("log", THREAD, "--graph"),
    "show": ("show", THREAD),
    "show a path": ("show", THREAD, "messages[-1]"),
    "show an error": ("show", "support-43"),
    "diff": ("diff", THREAD, BEFORE_THE_FORK),
    "diff of texts": ("diff", "report-2026-11"),
    "blame": ("blame", THREAD, "refund"),
    "blame of each": ("blame", THREAD, "messages", "--each"),
    "search": ("search", THREAD, "lamp"),
    "stats": ("stats",),
    "stats of a thread": ("stats", THREAD),
    "verify": ("verify",),
}


def _run(database: str, *arguments: str) -> Ran:
    ran = in_pipe("--url", database, *arguments)
    assert ran.code == 0, ran.err
    assert ran.err == ""
    return ran


def _records(database: str, *arguments: str) -> Any:
    return json_lines(_run(database, *arguments, "--json"))


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_a_terminal_shows_what_a_pipe_gets_with_colours(database: str, arguments: tuple[str, ...]) -> None:
    piped, shown = _run(database, *arguments), in_terminal("--url", database, *arguments)
    assert shown.code == 0
    assert "\x1b[" in shown.out
    assert "\x1b" not in piped.out
    assert "\t" not in piped.out
    # A progress bar is drawn next to the result, on the same terminal.
    text = re.sub("\x1b\\[[0-9;?]*[A-Za-z]|\r", "", shown.out)
    rows = [line.rstrip() for line in text.splitlines()]
    assert all(line.rstrip() in rows for line in piped.lines)
    assert piped.lines


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_json_is_an_object_a_line(database: str, arguments: tuple[str, ...]) -> None:
    records = _records(database, *arguments)
    assert all(isinstance(record, dict) for record in records)
    assert bool(records) == (arguments[0] != "verify")  # which has nothing to say here
    assert "\x1b" not in in_terminal("--url", database, *arguments, "--json").out.partition("{")[2]


def test_a_listing_has_every_thread(database: str) -> None:
    records = _records(database, "threads", "--sort", "id")
    assert [(each["id"], each["status"], each["checkpoints"]) for each in records] == [
        ("report-2026-11", "idle", 5),
        ("support-42", "idle", 24),
        ("support-43", "error", 8),
        ("support-44", "interrupted", 8),
        ("support-45", "idle", 9),
    ]
    two = json_lines(in_pipe("threads", "-u", database, "--json", "--limit", "2"))
    assert [each["id"] for each in two] == ["support-44", "report-2026-11"]
    assert [each["id"] for each in _records(database, "threads", "--text", "LAMP")] == ["support-44", "support-42"]
    assert [each["id"] for each in _records(database, "threads", "--metadata", '{"team": "parcels"}')] == ["support-43"]
    assert [each["id"] for each in _records(database, "threads", "--owner", "customer-23")] == ["support-43"]
    assert [each["id"] for each in _records(database, "threads", "--since", "2026-11-20T10:02:00")] == ["support-44"]


def test_the_graph_shows_branches_forks_and_subgraphs(database: str) -> None:
    drawn = _run(database, "log", THREAD, "--graph").out
    assert re.sub("(?<=lookup:)[0-9a-f]{4}(?=:)", "task", drawn) == GRAPH


def test_the_graph_of_one_namespace_stands_alone(database: str) -> None:
    for ns in _calls(database):
        for named in (ns, short_ns(ns)):
            lines = _run(database, "log", THREAD, "--graph", "--ns", named).lines
            assert len(lines) == 4
            assert all(line.startswith("●  1f1e4c") for line in lines)


def _calls(database: str) -> list[str]:
    """The namespaces of the subgraph's calls, the newest first."""
    found = dict.fromkeys(str(each["ns"]) for each in _records(database, "log", THREAD))
    return [ns for ns in found if ns]


def test_the_name_of_a_node_of_a_subgraph_is_seen_on_a_narrow_terminal(database: str) -> None:
    lines = in_terminal("log", "-u", database, THREAD, "--graph", "--no-color", "--no-pager", columns=60).lines
    assert all(len(line) <= 60 for line in lines)
    assert sum("search" in line for line in lines) == sum("choose" in line for line in lines) == 2


def test_a_namespace_may_be_named_as_it_is_shown(database: str) -> None:
    newest, first = _calls(database)
    assert re.fullmatch("lookup:[0-9a-f]{4}", short_ns(newest))
    assert short_ns(newest) != short_ns(first)
    places = _records(database, "search", THREAD, "lamp", "--ns", short_ns(newest))
    assert {each["ns"] for each in places} == {newest}
    assert {each["ns"] for each in _records(database, "log", THREAD, "--ns", short_ns(first))} == {first}
    assert _records(database, "log", THREAD, "--ns", "lookup:none") == []


def test_the_log_is_the_history(database: str) -> None:
    with threadmark.open(url_of(database)) as saver:
        entries = saver.history(THREAD, ns=None, limit=50).entries
        records = _records(database, "log", THREAD)
        assert [(each["ns"], each["id"], each["parent"], each["step"]) for each in records] == [
            (entry.ns, entry.id, entry.parent, entry.step) for entry in entries
        ]
        assert [datetime.fromisoformat(each["created_at"]) for each in records] == [
            entry.created_at for entry in entries
        ]
        assert [len(each["writes"]) for each in records] == [len(entry.writes) for entry in entries]
    assert len(_records(database, "log", THREAD, "-n", "3")) == 3
    newest, _ = _calls(database)
    assert {each["ns"] for each in _records(database, "log", THREAD, "--ns", newest)} == {newest}
    assert _records(database, "log")[0]["thread"] == "support-44"  # which was updated last


def test_a_state_is_shown_by_name_and_fields(database: str) -> None:
    (record,) = _records(database, "show", THREAD)
    assert record["state"]["order"] == {
        "__type__": "demo_database:Order",
        "number": "A-1042",
        "item": "desk lamp",
        "price": 89,
        "shipped": "2026-11-14",
    }
    shown = _run(database, "show", THREAD)
    assert '    content: "Order A-1042 arrived damaged: the lamp is broken."' in shown.lines
    assert "  │ Changed mind: take it back within 30 days." in shown.lines
    assert "branch:to" not in shown.out
    assert "branch:to:carrier" in _run(database, "show", "support-43", "--engine").out


def test_errors_and_open_questions_are_shown(database: str) -> None:
    assert '    args: ("the carrier did not answer within 30 seconds")' in _run(database, "show", "support-43").lines
    assert (
        '      value: {"question": "Refund 89 euros for the desk lamp?"}' in _run(database, "show", "support-44").lines
    )
    (record,) = _records(database, "show", "support-44")
    assert [write["kind"] for write in record["writes"]] == ["interrupt"]


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ((), "1f1e4c77-7849-6b00"),
        (("--at", "~0"), "1f1e4c77-7849-6b00"),
        (("--at", "~2"), "1f1e4c66-be4a-6480"),
        (("--at", "1f1e4c43"), "1f1e4c43-a6ad-6980"),
        (("--at", "1f1e4c43~1"), "1f1e4c42-3c48-6280"),
        (("--at", "1f1e4c3e"), "1f1e4c3e-3fd9-6b00"),  # in the only namespace that has it
    ],
)
def test_a_checkpoint_is_named_in_several_ways(database: str, address: tuple[str, ...], expected: str) -> None:
    (record,) = _records(database, "show", THREAD, *address)
    assert record["id"].startswith(expected)


def test_a_checkpoint_of_a_call_is_named_by_the_call(database: str) -> None:
    newest, _ = _calls(database)
    (record,) = _records(database, "show", THREAD, "--at", "~", "--ns", short_ns(newest))
    assert record["id"].startswith("1f1e4c3e-3fd9-6b00")


def test_a_part_is_shown_alone(database: str) -> None:
    assert _run(database, "show", THREAD, "messages[0].content").out == (
        "Order A-1042 arrived damaged: the lamp is broken.\n"
    )
    (record,) = _records(database, "show", THREAD, "refund", "--at", BEFORE_THE_FORK)
    assert record.pop("id").startswith(BEFORE_THE_FORK)
    assert record == {"thread": THREAD, "ns": "", "path": "refund", "value": 89}


def test_a_diff_names_every_change(database: str) -> None:
    ran = _run(database, "diff", THREAD, BEFORE_THE_FORK)
    assert ran.lines[0] == "from 1f1e4c27 to 1f1e4c77"
    assert "~ refund: 89 → 0" in ran.lines
    assert "    - Lost on the way: wait for ten days, then send a new one." in ran.lines
    assert "    + Lost on the way: wait for seven days, then send a new one." in ran.lines
    assert '+ notes[3]: "a person said no"' in ran.lines
    with threadmark.open(url_of(database)) as saver:
        (identifier,) = (node.id for node in saver.tree(THREAD).nodes if node.id.startswith(BEFORE_THE_FORK))
        a = {"configurable": {"thread_id": THREAD, "checkpoint_id": identifier}}
        changes = saver.diff(a, {"configurable": {"thread_id": THREAD}}).changes
    records = _records(database, "diff", THREAD, BEFORE_THE_FORK, "--engine")
    assert [(each["path"], each["kind"]) for each in records] == [(each.path, each.kind) for each in changes]
    assert [each["path"] for each in _records(database, "diff", THREAD, BEFORE_THE_FORK, "--path", "refund")] == [
        "refund"
    ]


def test_a_diff_of_a_step_is_that_with_its_parent(database: str) -> None:
    (record,) = _records(database, "diff", THREAD)
    assert (record["a"][:18], record["path"]) == ("1f1e4c76-0de4-6400", "messages[1]")


def test_a_diff_says_by_its_exit_code_whether_there_is_one(database: str) -> None:
    assert in_pipe("diff", "-u", database, THREAD, "~1", "--exit-code").code == 1
    assert in_pipe("diff", "-u", database, THREAD, "~0", "--exit-code").code == 0
    left_out = in_pipe("diff", "-u", database, THREAD, BEFORE_THE_FORK, "--limit", "1")
    assert "further changes are left out" in left_out.err


def test_blame_names_the_checkpoint_that_set_a_value(database: str) -> None:
    assert _run(database, "blame", THREAD, "refund").lines == [
        "refund: 0",
        "since 1f1e4c76  2026-11-20 09:47:20  approve",
    ]
    (record,) = _records(database, "blame", THREAD, "refund", "--at", BEFORE_THE_FORK)
    assert (record["value"], record["since"]["nodes"]) == (89, ["propose"])
    each = _records(database, "blame", THREAD, "messages", "--each")
    assert [(one["path"], one["since"]["id"][:8]) for one in each] == [
        ("messages[0]", "1f1e4c24"),
        ("messages[1]", "1f1e4c77"),
    ]


def test_a_search_names_each_place_once(database: str) -> None:
    records = _records(database, "search", THREAD, "NEIGHBOUR", "--ns", "")
    assert {(each["place"], each["path"].partition("[")[0]) for each in records} >= {("values", "messages")}
    assert all(each["text"] == "neighbour" for each in records)
    every = _run(database, "search", THREAD, "NEIGHBOUR", "--ns", "", "--every").lines
    assert len(every) == len(records)
    nothing = in_pipe("search", "-u", database, THREAD, "nobody wrote this")
    assert (nothing.code, nothing.out) == (3, "")


def test_a_search_shows_each_text_once_and_says_how_often_it_is_there(database: str) -> None:
    lines = _run(database, "search", THREAD, "damaged: the lamp").lines
    (line,) = lines
    records = _records(database, "search", THREAD, "damaged: the lamp")
    ours = [each for each in records if not str(each["path"]).startswith("__start__")]
    assert len(ours) < len(records)
    assert line.endswith(f"Order A-1042 arrived damaged: the lamp is broken.  ({len(ours) - 1} more places)")
    assert "(writes)" not in line


def test_what_a_limit_leaves_out_is_said(database: str) -> None:
    listed = in_pipe("threads", "-u", database, "--limit", "2", "--owner", "customer-17")
    assert (len(listed.lines), listed.err) == (3, "")
    assert in_pipe("threads", "-u", database, "--limit", "2").err == "2 of 5 threads: --limit 0 lists all\n"
    assert (
        in_pipe("threads", "-u", database, "-n", "1", "--text", "LAMP").err == "1 of 2 threads: --limit 0 lists all\n"
    )
    for arguments in ((), ("--every",), ("--json",)):
        found = in_pipe("search", "-u", database, THREAD, "lamp", "--limit", "2", *arguments)
        assert (len(found.lines), found.err) == (2, "there are more than 2: --limit 0 shows all\n")


def test_a_time_is_a_moment_or_how_long_ago_it_is(database: str) -> None:
    assert len(_records(database, "threads", "--since", "5000w")) == 5
    assert _records(database, "threads", "--until", "5000w") == []
    for moment in ("2026-11-20T10:02", "2026-11-20 10:02:00", "2026-11-20T11:02:00+01:00"):
        assert [each["id"] for each in _records(database, "threads", "--since", moment)] == ["support-44"]
    refused = in_pipe("threads", "-u", database, "--since", "yesterday")
    assert refused.code == 2
    assert "write it as 30d, 12h, 1d12h, 90m, 45s or 2w, or a moment such as 2026-11-20" in refused.err


@pytest.mark.parametrize("arguments", [("threads",), ("log", THREAD), ("blame", THREAD, "messages", "--each")])
def test_times_in_columns_name_their_zone(database: str, arguments: tuple[str, ...]) -> None:
    assert " (UTC) " in _run(database, *arguments).lines[0]


def test_figures_are_those_of_the_saver(database: str) -> None:
    (record,) = _records(database, "stats", THREAD)
    with threadmark.open(url_of(database)) as saver:
        found = saver.stats(THREAD)
    assert {name: record[name] for name in ("checkpoints", "writes", "segments", "bytes_stored")} == {
        "checkpoints": 24,
        "writes": found.writes,
        "segments": found.segments,
        "bytes_stored": found.bytes_stored,
    }


def test_a_sound_database_is_said_to_be_one(database: str) -> None:
    assert _run(database, "verify", "--decode").out == "5 threads, 54 checkpoints, 103 pending writes: all as written\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "support-4"), "there is no thread 'support-4': did you mean 'support-4"),
        (("log", "nobody"), "there is no thread 'nobody'"),
        (("show", THREAD, "--at", "ffff"), "no checkpoint that begins with 'ffff'"),
        (("show", THREAD, "--at", "1f1e"), "is the beginning of 24 checkpoints, such as 1f1e4c77"),
        (("show", THREAD, "--at", "~99"), "has only 7 checkpoints before"),
        (("show", THREAD, "--ns", "nothing"), "has no checkpoint in the namespace 'nothing'"),
        (("show", THREAD, "nothing"), "there is nothing at 'nothing'"),
        (("blame", THREAD, "messages[99]"), "there is nothing at 'messages[99]'"),
        (("stats", "nobody"), "there is no thread 'nobody'"),
        (("verify", "nobody"), "there is no thread 'nobody'"),
        (("diff", "nobody"), "there is no thread 'nobody'"),
        (("search", "nobody", "x"), "there is no thread 'nobody'"),
    ],
)
def test_what_is_not_there_is_exit_code_3(database: str, arguments: tuple[str, ...], message: str) -> None:
    ran = in_pipe("--url", database, *arguments)
    assert (ran.code, ran.out) == (3, "")
    assert message in ran.err
    assert "Traceback" not in ran.err
