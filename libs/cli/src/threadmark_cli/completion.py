"""Shell completion of the ids of threads. A failure while they are looked up is no error."""

import io
from contextlib import redirect_stderr
from typing import Any

import click
from click.shell_completion import CompletionItem

from threadmark_cli.session import Session
from threadmark_cli.settings import settings_of

_MOST = 100
"""Ids that are offered."""

_PATIENCE = 2.0
"""Seconds for a server to answer."""


def thread_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001 - click's signature
    """The threads that were updated last, of those whose ids begin so."""
    try:
        with redirect_stderr(io.StringIO()):
            found = _thread_ids(ctx, incomplete)
    except Exception:  # noqa: BLE001 - a message would be written into the line that is being typed
        return []
    return [CompletionItem(each) for each in found if each.startswith(incomplete) and each.isprintable()]


def _thread_ids(ctx: click.Context, incomplete: str) -> list[str]:
    session = Session(settings_of(ctx))
    options: dict[str, Any] = {"timeout": _PATIENCE} if session.url.startswith(("postgres", "redis")) else {}
    with session.saver(options=options) as saver:
        return [thread.id for thread in saver.list_threads(text=incomplete or None, limit=_MOST).threads]
