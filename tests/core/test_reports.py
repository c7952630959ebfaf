"""The report of a retention."""

from threadmark.types import Problem, PruneReport, RetentionReport

REPORT = RetentionReport(
    12, 1, 2, 3, 0, 4096, PruneReport(5, 60, 7, 8, 9000), [Problem("damaged", "thread 'a'", "gone")], 0.5, dry_run=False
)


def test_a_report_is_a_line() -> None:
    assert str(REPORT) == (
        "looked at 12 threads: removed 5 (2 expired, 3 idle, 0 for space, 4,096 bytes), and 60 checkpoints and "
        "9,000 bytes of 5 others; 1 busy and 1 damaged ones left alone; 0.50 s"
    )
    assert "would remove 5" in str(REPORT._replace(dry_run=True))


def test_a_report_shows_the_beginning_of_many_problems() -> None:
    shown = repr(REPORT._replace(problems=REPORT.problems * 50))
    assert shown.startswith("RetentionReport(threads=12, busy=1,")
    assert shown.endswith("... and 45 more])")
