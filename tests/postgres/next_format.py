"""A made-up next format, so that the machinery of formats is tested while there is only one."""

import pytest

from threadmark_postgres import migrations

NUMBER = migrations.CURRENT + 1
STEP = migrations.Migration(
    NUMBER,
    "a step of the tests",
    (migrations.Table("made_up", 'thread_id text COLLATE "C" PRIMARY KEY'),),
    ("ALTER TABLE tm.thread ADD COLUMN made_up bigint NOT NULL DEFAULT 7",),
    retired=migrations.GATES,
    least_writer=NUMBER,
    release="0.2.0",
)


def install(monkeypatch: pytest.MonkeyPatch | None = None) -> None:
    """Let this process be of a release that knows it."""
    patch = monkeypatch or pytest.MonkeyPatch()
    patch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, STEP))
    patch.setattr(migrations, "CURRENT", NUMBER)
