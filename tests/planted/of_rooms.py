"""Faults in the rooms of core: leases, forks, effects, caches and replication"""

from planted.fault import Fault, cases


def _cases(topics: str, way: str = "memory-blocking") -> tuple[str, ...]:
    return cases("tests/test_conformance.py", topics, way)


_EFFECTS = ("tests/effects/test_once.py",)
_PAIRS = ("tests/replication/test_modes.py", "tests/replication/test_copying.py", "tests/replication/test_failover.py")
_TERMS = ("tests/replication/test_terms.py", "tests/replication/test_failover.py")

FAULTS = [
    Fault(
        "who takes a lease twice is refused because of itself",
        "core/src/threadmark/leases/taking.py",
        'if last.left and on_busy in ("wait", "reject") and last.token not in tried:',
        'if last.left and on_busy in ("wait", "reject") and (on_busy == "reject" or last.token not in tried):',
        _cases("repeating."),
    ),
    Fault(
        "a holder releases the lease of another one",
        "core/src/threadmark/leases/taking.py",
        "    if last.token != token:\n        return False\n",
        "",
        _cases("leases. or tokens."),
    ),
    Fault(
        "a deadline counts from the answer",
        "core/src/threadmark/leases/renewal.py",
        "self._due, self._deadline = sent + self._ttl / _PARTS, max(self._deadline, sent + self._ttl)",
        "self._due, self._deadline = sent + self._ttl / _PARTS, time.monotonic() + self._ttl",
        ("tests/core/test_leases.py",),
    ),
    Fault(
        "the child of a fork releases its parent's lease",
        "core/src/threadmark/leases/lease.py",
        "        self._over, self._renewal = True, None\n",
        "        self._renewal = None\n",
        ("tests/core/test_leases.py",),
    ),
    Fault(
        "a fork whose answer was lost is placed once more",
        "core/src/threadmark/travel/forking.py",
        "        if attempt and (yield from",
        "        if attempt > _ATTEMPTS and (yield from",
        ("tests/simulator/test_simulator.py::test_a_plan_that_failed_once_does_not_fail_again",),
    ),
    Fault(
        "a new thread of a fork that was tried twice exists already",
        "core/src/threadmark/travel/fork_parts.py",
        "if epochs[target] is not None and epochs[target] not in tried:",
        "if epochs[target] is not None:",
        _cases("repeating."),
    ),
    Fault(
        "a fork counts no checkpoints",
        "core/src/threadmark/travel/fork_parts.py",
        "    yield from prove_complete(context, source, None)\n",
        "",
        ("tests/sqlite/test_damage.py",),
    ),
    Fault(
        "a result is stored although its claim was taken over",
        "core/src/threadmark/effects/calls.py",
        '                raise _lost(site, claim, "was taken over or settled") from None\n',
        "                return outcome\n",
        _EFFECTS,
    ),
    Fault(
        "a call whose result cannot be stored is made again",
        "core/src/threadmark/effects/calls.py",
        'yield from self._settle(table, claim, "failed", refused)\n',
        'yield from self._settle(table, claim, "not done", refused)\n',
        _EFFECTS,
    ),
    Fault(
        "a claim is over although it is renewed",
        "core/src/threadmark/effects/calls.py",
        "        seen = claim.claim, claim.renewals\n",
        "        seen = claim.claim, 0\n",
        _EFFECTS,
    ),
    Fault(
        "a process with the number of another one holds its claims",
        "core/src/threadmark/effects/holder.py",
        "return _is_unknown(self.process) if began is None else began != self.began",
        'return _is_unknown(self.process) if began is None else began == ""',
        _EFFECTS,
    ),
    Fault(
        "a removal that failed is not forgotten by the cache",
        "core/src/threadmark/caching/flows.py",
        "        except Exception:\n            yield from self._access.forget(self._cache_keys_of(shortened))\n",
        "        except Exception:\n            yield from self._access.forget(())\n",
        ("tests/caching/test_deleting.py",),
    ),
    Fault(
        "a cache is believed without proof",
        "core/src/threadmark/caching/cache.py",
        "return size <= LARGEST and segment_key(expand(data, size)) == key",
        "return size <= LARGEST and len(key) == len(segment_key(expand(data, size)))",
        ("tests/caching/test_entries.py",),
    ),
    Fault(
        "a cache keeps what a thread has lost",
        "core/src/threadmark/caching/memory.py",
        "if held is not None and (held.until <= now or held.epoch < asked.epoch):",
        "if held is not None and held.until <= now:",
        ("tests/caching/test_entries.py", "tests/caching/test_deleting.py"),
    ),
    Fault(
        "a cache that is away forgets what it is to forget",
        "core/src/threadmark/caching/flows.py",
        "                    self._pending = {**cache_keys, **self._pending}\n",
        "                    self._pending = {**self._pending}\n",
        ("tests/caching/test_deleting.py", "tests/caching/test_outages.py"),
    ),
    Fault(
        "a change that the standby has is taken for copied",
        "core/src/threadmark/replication/copying.py",
        "    if outcome.refused is not None or outcome.exists:\n",
        "    if outcome.refused is not None:\n",
        ("tests/replication/test_copying.py",),
    ),
    Fault(
        "a token outlives a promotion",
        "core/src/threadmark/replication/side_store.py",
        "return stored if stored and term == self._term else _LOST",
        "return stored or _LOST",
        _TERMS,
    ),
    Fault(
        "the epoch of one database counts in the other",
        "core/src/threadmark/replication/side_store.py",
        "            if number != self._number:\n",
        "            if number > 1:\n",
        ("tests/replication/test_copying.py",),
    ),
    Fault(
        "two promotions have the same term",
        "core/src/threadmark/replication/terms.py",
        "return following if following % 2 != side.number else following + 1",
        "return following",
        ("tests/replication/test_terms.py",),
    ),
    Fault(
        "a deletion of what only the other side has is not recorded",
        "core/src/threadmark/replication/side_store.py",
        "if epoch is not None or self._term > FIRST_TERM:\n            self._whole.discard",
        "if epoch is not None:\n            self._whole.discard",
        ("tests/replication/test_deleted_apart.py", "tests/replication/test_deleted_twice.py"),
    ),
    Fault(
        "a comparison is applied although entries have gone since",
        "core/src/threadmark/replication/applying.py",
        "    if (yield from has_settled(store, thread_id, compared.ours)):\n        return None\n",
        "",
        ("tests/replication/test_orders.py",),
    ),
    Fault(
        "a write is acknowledged before its change is copied",
        "core/src/threadmark/replication/transactions.py",
        "return 0 < position <= waiters.copied_to",
        "return position <= waiters.copied_to + 1",
        _PAIRS,
    ),
    Fault(
        "a failover takes over an incomplete side",
        "core/src/threadmark/replication/promoting.py",
        '    if not known.complete:\n        raise ReplicationError(\n            f"{what}. {standby} has never',
        '    if known.term < 0:\n        raise ReplicationError(\n            f"{what}. {standby} has never',
        ("tests/replication/test_terms.py",),
    ),
]
