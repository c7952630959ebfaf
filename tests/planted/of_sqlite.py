"""Faults in the SQLite backend: statements, the shared commit, and the checks of the file"""

from planted.fault import Fault, cases


def _cases(topics: str, way: str = "file-blocking") -> tuple[str, ...]:
    return cases("tests/test_conformance.py", topics, way)


FAULTS = [
    Fault(
        "a commit is not synced",
        "sqlite/src/threadmark_sqlite/sql/connections.py",
        '"full": ("PRAGMA synchronous = FULL",',
        '"full": ("PRAGMA synchronous = NORMAL",',
        ("tests/power/test_power_cuts.py",),
    ),
    Fault(
        "a commit is answered without a look at its file",
        "sqlite/src/threadmark_sqlite/driver/writer.py",
        "                    elif looks is None or not looks.is_kept():\n",
        "                    elif looks is None:\n",
        ("tests/sqlite/test_replaced_files.py",),
    ),
    Fault(
        "a transaction that failed is not rolled back",
        "sqlite/src/threadmark_sqlite/driver/playing.py",
        "    except BaseException:\n        if connection.in_transaction:  # inline",
        "    except BaseException:\n        if connection.in_transaction and transaction is None:  # inline",
        ("tests/sqlite/test_callers.py",),
    ),
    Fault(
        "callers join after the commit",
        "sqlite/src/threadmark_sqlite/driver/playing.py",
        """        if waiting and join is not None:
            join()
        if has_begun:
            connection.execute(connections.COMMIT)
""",
        """        if has_begun:
            connection.execute(connections.COMMIT)
        if waiting and join is not None:
            join()
""",
        ("tests/sqlite/test_callers.py", "tests/sqlite/test_commits.py"),
    ),
    Fault(
        "a read goes on in another snapshot",
        "sqlite/src/threadmark_sqlite/driver/playing.py",
        "if alone is not None and execute(connection, alone[0]) != alone[1]:",
        "if alone is not None and execute(connection, alone[0]) is None:",
        ("tests/sqlite/test_finding.py", "tests/sqlite/test_meeting.py", "tests/sqlite/test_commits.py"),
    ),
    Fault(
        "a thread that is not read again may have lost rows",
        "sqlite/src/threadmark_sqlite/sql/adding.py",
        "t.thread_id = threadmark_head.thread_id AND t.epoch = ? AND t.minute = ?",
        "t.thread_id = threadmark_head.thread_id AND t.epoch >= ? AND t.minute = ?",
        ("tests/sqlite/test_at_once.py", "tests/sqlite/test_meeting.py", *_cases("removing. or pruning.")),
    ),
    Fault(
        "a pack is added under someone else's lease",
        "sqlite/src/threadmark_sqlite/sql/adding.py",
        "    AND t.live = 1 AND t.deleted_up_to IS NULL AND t.lease_ends IS NULL AND t.expires_at IS NULL\n",
        "    AND t.live = 1 AND t.deleted_up_to IS NULL AND t.expires_at IS NULL\n",
        ("tests/sqlite/test_at_once.py", *_cases("tokens. or leases.")),
    ),
    Fault(
        "a deletion ends no epoch",
        "sqlite/src/threadmark_sqlite/sql/removing.py",
        "    epoch = max(epoch + 1, ?),\n    owner = NULL,",
        "    epoch = min(epoch, ?),\n    owner = NULL,",
        _cases("removing. or deleting. or outbox."),
    ),
    Fault(
        "a deletion leaves the records of writes",
        "sqlite/src/threadmark_sqlite/sql/removing.py",
        '    "DELETE FROM threadmark_batch WHERE thread = ?",\n',
        '    "DELETE FROM threadmark_batch WHERE thread = -?",\n',
        ("tests/sqlite/test_erased.py", *_cases("removing. or deleting.")),
    ),
    Fault(
        "a removal forgets which ids it took",
        "sqlite/src/threadmark_sqlite/sql/removing.py",
        "SET epoch = epoch + 1, removed_up_to = nullif(max(coalesce(removed_up_to, ''), ?), '')",
        "SET epoch = epoch + 1, removed_up_to = nullif(coalesce(removed_up_to, ?), '')",
        _cases("removing. or pruning. or deleting."),
    ),
    Fault(
        "a deleted thread is forgotten before the other database knows",
        "sqlite/src/threadmark_sqlite/sql/removing.py",
        "    AND NOT EXISTS (SELECT 1 FROM threadmark_outbox AS o WHERE o.thread_id = threadmark_thread.thread_id)\n",
        "",
        ("tests/sqlite/test_replication.py", *_cases("outbox. or removing.")),
    ),
    Fault(
        "a smaller term takes the place of a greater one",
        "sqlite/src/threadmark_sqlite/sql/replication.py",
        "WHERE term <= ?\n",
        "WHERE term <> ?\n",
        ("tests/sqlite/test_replication.py", *_cases("outbox.")),
    ),
    Fault(
        "a settled position settles later ones",
        "sqlite/src/threadmark_sqlite/sql/replication.py",
        "WHERE thread_id = ? AND position <= ?\n",
        "WHERE thread_id = ? AND position >= ?\n",
        ("tests/sqlite/test_replication.py", *_cases("outbox.")),
    ),
    Fault(
        "a token goes back with the clock",
        "sqlite/src/threadmark_sqlite/sql/threads.py",
        "SET token = max(token + 1, {CLOCK}), lease_ends",
        "SET token = {CLOCK}, lease_ends",
        ("tests/sqlite/test_lease_clocks.py", *_cases("tokens.")),
    ),
    Fault(
        "the count of a head ignores what was removed",
        "sqlite/src/threadmark_sqlite/adding.py",
        "(after - before, number, ns, thread_id, ns)",
        "(len(list(some)), number, ns, thread_id, ns)",
        ("tests/sqlite/test_damage.py", *_cases("removing. or pruning. or deleting.")),
    ),
]
