"""Without the compiled parts there is nothing to compare. That they are there in CI is a test of its own."""

from threadmark.runtime import compiled

collect_ignore = (
    []
    if compiled.IN_USE
    else [
        "test_both_ways.py",
        "test_counterparts.py",
        "test_packs.py",
        "test_reading.py",
        "test_rope.py",
        "test_tuples.py",
    ]
)
