"""Faults in the Postgres backend: functions of the server, the driver, and the batches of callers"""

from planted.fault import Fault, cases


def _cases(topics: str) -> tuple[str, ...]:
    return cases("tests/postgres/test_conformance.py", topics, "url or pool or connection")


_LEASES = ("tests/postgres/test_leases.py", *_cases("tokens. or judging. or leases."))
_FUNCTIONS = "postgres/src/threadmark_postgres/functions/"

FAULTS = [
    Fault(
        "a deletion runs at another isolation level",
        f"{_FUNCTIONS}drop_1.sql",
        "    IF current_setting('transaction_isolation') <> 'read committed' THEN\n",
        "    IF p_thread IS NULL THEN\n",
        ("tests/postgres/test_concurrency.py", "tests/postgres/test_given.py", "tests/postgres/test_failures.py"),
    ),
    Fault(
        "a deletion passes over a thread that is locked",
        f"{_FUNCTIONS}drop_1.sql",
        "    IF NOT FOUND THEN\n        SELECT l.epoch",
        "    IF p_thread IS NULL THEN\n        SELECT l.epoch",
        ("tests/postgres/test_order.py",),
    ),
    Fault(
        "a change that stands alone runs at another isolation level",
        f"{_FUNCTIONS}add_1.sql",
        "WHEN v_is_alone AND NOT p_waits AND current_setting('transaction_isolation') <> 'read committed' THEN",
        "WHEN v_is_alone AND NOT p_waits AND p_thread IS NULL THEN",
        ("tests/postgres/test_leases.py",),
    ),
    Fault(
        "a change that stands alone takes no lock",
        f"{_FUNCTIONS}add_1.sql",
        "    IF v_is_alone THEN\n        PERFORM FROM tm.lock_1(p_thread);\n",
        "    IF v_is_alone THEN\n        PERFORM tm.gate_1();\n",
        ("tests/postgres/test_leases.py", "tests/postgres/test_concurrency.py", *_cases("concurrency.")),
    ),
    Fault(
        "a lease is renewed by any token",
        f"{_FUNCTIONS}renew_lease_1.sql",
        "WHERE t.thread_id = p_thread AND t.token = p_token AND tm.gate_1();",
        "WHERE t.thread_id = p_thread AND tm.gate_1();",
        _LEASES,
    ),
    Fault(
        "a token that was lost begins a deleted thread",
        f"{_FUNCTIONS}begin_1.sql",
        "coalesce(epoch, -1), coalesce(v_token, 0), NULL, v_ends, v_deleted",
        "coalesce(epoch, -1), p_token, NULL, v_ends, v_deleted",
        _LEASES,
    ),
    Fault(
        "a token of an earlier lease still writes on Postgres",
        f"{_FUNCTIONS}refusal_1.sql",
        "WHEN p_token NOT IN (token, 9223372036854775807) THEN 'lost'",
        "WHEN p_token NOT IN (token, 9223372036854775807) AND p_token > token THEN 'lost'",
        _LEASES,
    ),
    Fault(
        "the greatest token is that of the clock",
        f"{_FUNCTIONS}set_lease_1.sql",
        "SET token = greatest(t.token + 1, v_clock),",
        "SET token = v_clock,",
        _LEASES,
    ),
    Fault(
        "an entry that comes during the forgetting is not seen",
        f"{_FUNCTIONS}forget_1.sql",
        "        PERFORM FROM tm.outbox AS o WHERE o.thread_id = v_thread LIMIT 1;\n        CONTINUE WHEN FOUND;\n",
        "",
        ("tests/postgres/test_forgetting.py",),
    ),
    Fault(
        "a copied change ignores the epoch of its source",
        f"{_FUNCTIONS}is_behind_1.sql",
        "SELECT f.position = p_previous AND f.epoch IN (0, p_epoch)",
        "SELECT f.position = p_previous",
        _cases("outbox."),
    ),
    Fault(
        "a term is raised while a change is under way",
        f"{_FUNCTIONS}is_outdated_1.sql",
        "    LOCK TABLE tm.outbox IN ROW EXCLUSIVE MODE;\n",
        "",
        ("tests/postgres/test_recording.py", "tests/postgres/test_order.py", "tests/replication/test_chaos.py"),
    ),
    Fault(
        "a removal on Postgres forgets which ids it took",
        f"{_FUNCTIONS}remove_1.sql",
        "        removed_up_to = greatest(\n            t.removed_up_to,\n",
        "        removed_up_to = least(\n            t.removed_up_to,\n",
        cases("tests/postgres/test_conformance.py", "removing.", "whose_last_checkpoint"),
    ),
    Fault(
        "a removal on Postgres leaves the writes of a namespace",
        f"{_FUNCTIONS}remove_1.sql",
        "        WHERE w.thread_id = p_thread AND w.ns = v_ns AND w.checkpoint_id = ANY (v_ids);\n",
        "        WHERE w.thread_id = p_thread AND w.ns = '' AND w.checkpoint_id = ANY (v_ids);\n",
        ("tests/postgres/test_erased.py", *_cases("removing. or pruning. or deleting. or keeping.")),
    ),
    Fault(
        "a commit whose answer was lost is made again",
        "postgres/src/threadmark_postgres/driver/conversation.py",
        "    if (yield from lost.was_carried_out()):\n",
        "    if (yield from lost.was_carried_out()) and lost is None:\n",
        ("tests/unanswered/test_lost_answers.py", "-k", "postgres"),
    ),
    Fault(
        "a commit that is under way counts as none",
        "postgres/src/threadmark_postgres/driver/conversation.py",
        '        if status == "in progress":\n',
        '        if status == "in doubt":\n',
        ("tests/postgres/test_pure.py",),
    ),
    Fault(
        "the victim of a deadlock is not tried again",
        "postgres/src/threadmark_postgres/driver/failures.py",
        '    "40",  # the',
        '    "40000",  # the',
        ("tests/postgres/test_pure.py",),
    ),
    Fault(
        "the statements of a batch lock threads in any order",
        "postgres/src/threadmark_postgres/driver/batching.py",
        "sorted(range(len(queries)), key=lambda position: queries[position].turn)",
        "sorted(range(len(queries)))",
        ("tests/postgres/test_batching.py", "tests/postgres/test_order.py"),
    ),
]
