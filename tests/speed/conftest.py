"""Without the compiled parts there is nothing to compare. A separate test checks that CI has them."""

from threadmark.runtime import compiled

collect_ignore = (
    []
    if compiled.IN_USE
    else [
        "test_both_ways.py",
        "test_counterparts.py",
        "test_files.py",
        "test_harm.py",
        "test_objects.py",
        "test_reading.py",
        "test_rope.py",
    ]
)
