"""Faults in the Redis backend: scripts, optimistic transactions, and the cache"""

from planted.fault import Fault, cases


def _cases(topics: str, way: str = "single") -> tuple[str, ...]:
    return cases("tests/redis_backend/test_conformance.py", topics, way)


_LUA = "redis/src/threadmark_redis/lua/"

FAULTS = [
    Fault(
        "a thread that lost a key is written to",
        f"{_LUA}add.lua",
        "if is_torn(0, stored[11]) then\n",
        "if is_torn(0, stored[11]) and not live then\n",
        ("tests/redis_backend/test_evicted.py",),
    ),
    Fault(
        "a write counts on segments that the server has lost",
        f"{_LUA}add.lua",
        "if lacks(needs, given) or lacks(written, given) then\n",
        "if lacks(needs, given) then\n",
        ("tests/redis_backend/test_evicted.py",),
    ),
    Fault(
        "a token of an earlier lease still writes on Redis",
        f"{_LUA}add.lua",
        "elseif token ~= -1 and token ~= last then\n",
        "elseif token ~= -1 and token > last then\n",
        _cases("tokens. or judging."),
    ),
    Fault(
        "the newest checkpoint of a namespace is the last that came",
        f"{_LUA}add.lua",
        "    if count == 0 or is_less(newest, rank) then\n",
        "    if count >= 0 then\n",
        _cases("writing. or reading. or forking."),
    ),
    Fault(
        "a transaction does not see who came between",
        f"{_LUA}commit.lua",
        "is_changed = is_changed or (stored[1] or '') .. ':' .. (stored[2] or '') ~= thread[1]",
        "is_changed = is_changed or (stored[1] or '') ~= thread[1]:match('^[^:]*')",
        ("tests/redis_backend/test_outbox.py", "-k", "test_a_transaction"),
    ),
    Fault(
        "a commit that is sent twice is made twice",
        f"{_LUA}commit.lua",
        "    if #thread > 1 and has(stored[3] or '', ARGV[2]) then\n",
        "    if #thread > 1 and is_changed == nil and has(stored[3] or '', ARGV[2]) then\n",
        ("tests/redis_backend/test_failures.py", "tests/unanswered/test_lost_answers.py", "-k", "lost and redis"),
    ),
    Fault(
        "an outbox on Redis follows the clock back",
        f"{_LUA}outbox.lua",
        "local position = math.max(previous + 1, clock())",
        "local position = clock()",
        ("tests/redis_backend/test_outbox.py",),
    ),
    Fault(
        "a thread that no longer expires goes all the same",
        f"{_LUA}thread.lua",
        "            redis.call('PERSIST', KEYS[number])\n",
        "            redis.call('EXISTS', KEYS[number])\n",
        ("tests/redis_backend/test_evicted.py",),
    ),
    Fault(
        "a cache on Redis takes entries of a reader that is late",
        f"{_LUA}cache_set.lua",
        "if redis.call('HGET', KEYS[1], 't') ~= ARGV[1] then\n",
        "if not redis.call('HGET', KEYS[1], 't') then\n",
        ("tests/caching/test_deleting.py", "tests/caching/test_entries.py"),
    ),
    Fault(
        "a transaction on Redis is committed under an old term",
        f"{_LUA}commit.lua",
        "if is_changed or (on_one_server and ARGV[3] ~= '' and is_raised(replica, tonumber(ARGV[3]))) then\n",
        "if is_changed then\n",
        ("tests/redis_backend/test_outbox.py",),
    ),
    Fault(
        "an error that half a change has caused is raised",
        "redis/src/threadmark_redis/transactions.py",
        "        work.expect_whole(strictly=not work.is_late)\n        yield from _expect_locked(work)\n",
        "",
        ("tests/redis_backend/test_outbox.py",),
    ),
]
