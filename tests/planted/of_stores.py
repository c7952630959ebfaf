"""Faults in libs/store: items on each backend, their filters and pages, pairs of databases, the cache of nodes"""

from planted.fault import Fault


def _cases(topics: str, way: str) -> tuple[str, ...]:
    return "tests/store/test_conformance.py", "-k", f"({topics}) and {way}"


_ITEMS = "store/src/threadmark_store/"

FAULTS = [
    Fault(
        "an owner deletes the items of none",
        f"{_ITEMS}items/sqlite.py",
        "AND (?text IS NULL OR owner = ?text)",
        "AND (?text IS NULL OR owner IS NULL OR owner = ?text)",
        _cases("owned.", "sqlite"),
    ),
    Fault(
        "a page skips items of the moment at which it begins",
        f"{_ITEMS}items/sql.py",
        "(updated_at < ?bigint OR (namespace, key) > (?text, ?text))",
        "(updated_at < ?bigint OR (namespace, key) = (?text, ?text))",
        _cases("pages.", "sqlite"),
    ),
    Fault(
        "the greatest integer of JSON is too great",
        f"{_ITEMS}values.py",
        "return bool(-_GREATEST <= value < _GREATEST)",
        "return bool(-_GREATEST <= value <= _GREATEST)",
        ("tests/store/test_values.py",),
    ),
    Fault(
        "a value that was replaced is ranked by its former vector",
        f"{_ITEMS}batches.py",
        "is not None and row.check == check and scope.has(row)",
        "is not None and scope.has(row)",
        ("tests/store/test_search.py", "tests/store/test_planted_faults.py"),
    ),
    Fault(
        "a refresh brings forward when an item ends",
        f"{_ITEMS}pairs/items.py",
        "if row.ttl is not None and now + row.ttl > (row.expires_at or 0)]",
        "if row.ttl is not None]",
        ("tests/store/test_pairs.py",),
    ),
    Fault(
        "the first removal of an item counts",
        f"{_ITEMS}pairs/changes.py",
        "times[owner] = max(at, times.get(owner, 0))",
        "times.setdefault(owner, at)",
        ("tests/store/test_pairs.py",),
    ),
    Fault(
        "both databases keep what they have of one moment",
        f"{_ITEMS}pairs/changes.py",
        "return version.at, True, 0",
        "return version.at, False, 0",
        ("tests/store/test_pairs.py",),
    ),
    Fault(
        "a put after a removal is as old as that",
        f"{_ITEMS}pairs/changes.py",
        "updated_at = max(row.updated_at, time + 1)",
        "updated_at = max(row.updated_at, time)",
        ("tests/store/test_pairs.py",),
    ),
    Fault(
        "a removal that comes late takes what was put before it",
        f"{_ITEMS}pairs/items.py",
        "    yield from _record(store, ahead)\n",
        "",
        ("tests/store/test_pairs.py",),
    ),
    Fault(
        "an entry that was replaced is dropped as expired",
        f"{_ITEMS}cached/memory.py",
        "if key in rows and _has_expired(rows[key], now):",
        "if key in rows:",
        ("tests/store/test_cache.py", "-k", "since_it_expired"),
    ),
    Fault(
        "the entries of all owners make room for one",
        f"{_ITEMS}cached/sql.py",
        "        WHERE owner = ?text\n        ORDER BY used_at\n",
        "        WHERE owner <> ?text\n        ORDER BY used_at\n",
        ("tests/store/test_cache.py", "-k", "not redis and not postgres"),
    ),
    Fault(
        "an item is sealed for any key",
        f"{_ITEMS}values.py",
        "return form + self._cipher.seal(body, _location(key))",
        'return form + self._cipher.seal(body, b"item")',
        ("tests/store/test_values.py",),
    ),
]
