"""A made-up next format, so that the machinery of formats is tested while there is only one."""

import pytest

from threadmark_sqlite import migrations

NUMBER = migrations.CURRENT + 1
STEP = migrations.Migration(
    NUMBER,
    "a step of the tests",
    (
        "CREATE TABLE threadmark_made_up (thread_id TEXT PRIMARY KEY)",
        "ALTER TABLE threadmark_thread ADD COLUMN made_up INTEGER NOT NULL DEFAULT 7",
        "ALTER TABLE threadmark_head ADD COLUMN made_up TEXT",
        "CREATE INDEX threadmark_made_up_index ON threadmark_thread (made_up) WHERE made_up > 7",
    ),
    least_writer=NUMBER,
    release="0.2.0",
)


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process be of a release that knows it."""
    monkeypatch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, STEP))
    monkeypatch.setattr(migrations, "CURRENT", NUMBER)
