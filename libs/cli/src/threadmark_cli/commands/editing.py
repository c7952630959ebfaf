"""`fork`, `restore`, `copy`, `rename`, `update`, `delete`: the commands that change single threads."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import click

from threadmark import ConfigError, ConflictError, SaverProtocol
from threadmark.model import count_text
from threadmark.types import UNSET, ThreadInfo, Undo
from threadmark_cli.addresses import addresses_of, at_option, expect_thread, ns_option
from threadmark_cli.command import command
from threadmark_cli.commands.threads import COLUMNS, thread_record
from threadmark_cli.completion import thread_ids
from threadmark_cli.effects import effect_record, effects_left
from threadmark_cli.exits import NotThereError
from threadmark_cli.output.quantities import bytes_text
from threadmark_cli.output.values import brief
from threadmark_cli.parameters import channel_values, duration, json_object
from threadmark_cli.session import Session

_FOREVER = "never"

yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Only say what would be done.")


@command(
    "fork",
    examples="""
    threadmark fork support-42 --at ~3                            # a run goes on from three checkpoints ago
    threadmark fork support-42 --at 1ef9 --set 'plan="refund"'    # with another value of the channel "plan"
    threadmark fork support-42 --set messages=@messages.json      # of a file
    threadmark fork support-42 --as support-42-again              # a thread of its own; the old one stays as it is
    """,
)
@click.argument("thread", shell_complete=thread_ids)
@at_option
@ns_option
@click.option(
    "--set", "values", multiple=True, metavar="CHANNEL=JSON", help="A new value of a channel, or @FILE with one."
)
@click.option("--as", "as_thread", metavar="THREAD", help="Begin a new thread with this id.")
def fork(
    session: Session, *, thread: str, at: str | None, ns: str | None, values: tuple[str, ...], as_thread: str | None
) -> None:
    """Begin a branch at a checkpoint, or a new thread.

    The new checkpoint has the state of the old one; a run of the thread goes on there. Nothing is lost. A branch shares
    the bytes of its thread, a new thread gets copies of those it needs. A value that is set is stored as JSON
    has it, whole: a list of messages needs LangChain's classes, so change those in Python.
    """
    if as_thread == "":
        raise click.UsageError("--as is empty: name the new thread.")
    changes = channel_values(values)
    with session.saver(write=True) as saver:
        config = addresses_of(saver, thread).config(at, ns)
        forked = saver.fork(config, changes or None, as_thread=as_thread)
        _tell_new(session, "forked", config, forked)


@command(
    "restore",
    examples="""
    threadmark restore support-42 --at ~5     # the state of five checkpoints ago is the newest again
    """,
)
@click.argument("thread", shell_complete=thread_ids)
@click.option("--at", required=True, metavar="CHECKPOINT", help="An id, the beginning of one, or ~2.")
@ns_option
def restore(session: Session, *, thread: str, at: str, ns: str | None) -> None:
    """Make an old checkpoint the newest again; later ones stay as another branch.

    The effects of the steps that are left are listed, newest first. None is undone.
    """
    with session.saver(write=True) as saver:
        config = addresses_of(saver, thread).config(at, ns)
        left = effects_left(saver, config)
        _tell_new(session, "restored", config, saver.restore(config), {"to_undo": [*map(_undo_record, left)]})
        if left and not session.out.as_json:
            _tell_left(session, left)


@command(
    "copy",
    examples="""
    threadmark copy support-42 support-42-copy
    """,
)
@click.argument("thread", shell_complete=thread_ids)
@click.argument("new")
def copy(session: Session, *, thread: str, new: str) -> None:
    """Copy a thread, with its whole past, to a new id."""
    with session.saver(write=True) as saver:
        if saver.get_thread(new) is not None:
            raise ConflictError(f"thread {new!r} is there already: choose another id, or delete it first")
        if not saver.copy_thread(expect_thread(saver, thread), new):
            raise _gone(thread)
        _tell_renamed(session, "copied", thread, new)


@command(
    "rename",
    examples="""
    threadmark rename support-42 billing-42
    """,
)
@click.argument("thread", shell_complete=thread_ids)
@click.argument("new")
def rename(session: Session, *, thread: str, new: str) -> None:
    """Give a thread another id."""
    with session.saver(write=True) as saver:
        if not saver.rename_thread(expect_thread(saver, thread), new):
            raise _gone(thread)
        _tell_renamed(session, "renamed", thread, new)


@command(
    "update",
    examples="""
    threadmark update support-42 --title "Refund for a lamp"
    threadmark update support-42 --metadata '{"team": "billing", "draft": null}'   # sets one key, removes another
    threadmark update support-42 --expires 30d                                     # `retention` removes it then
    """,
)
@click.argument("thread", shell_complete=thread_ids)
@click.option("--title", help='The title; "" removes it.')
@click.option("--metadata", metavar="JSON", help="Keys to set; null removes one.")
@click.option("--set-owner", "new_owner", metavar="OWNER", help='Whom the thread belongs to; "" is nobody.')
@click.option("--expires", metavar="WHEN", help="In how long (30d), when (2027-01-31T12:00Z), or never.")
def update(
    session: Session,
    *,
    thread: str,
    title: str | None,
    metadata: str | None,
    new_owner: str | None,
    expires: str | None,
) -> None:
    """Set a thread's title, metadata, owner or expiry."""
    changes: dict[str, Any] = {
        "title": UNSET if title is None else title or None,
        "metadata": json_object(metadata, "--metadata"),
        "owner": UNSET if new_owner is None else new_owner or None,
        "expires_at": UNSET if expires is None else _expiry(expires),
    }
    with session.saver(write=True) as saver:
        updated = saver.update_thread(thread, **changes)
        session.out.rows(COLUMNS, [updated], thread_record)


@command(
    "delete",
    examples="""
    threadmark delete support-42                     # asks first
    threadmark delete support-42 support-43 --yes
    threadmark delete support-42 --at ~0             # only the newest checkpoint
    """,
)
@click.argument("threads", metavar="THREAD...", nargs=-1, required=True, shell_complete=thread_ids)
@click.option("--at", metavar="CHECKPOINT", help="Remove this checkpoint alone: its id, the beginning of one, or ~2.")
@ns_option
@dry_run_option
@yes_option
def delete(
    session: Session, *, threads: tuple[str, ...], at: str | None, ns: str | None, dry_run: bool, yes: bool
) -> None:
    """Remove threads with everything in them, or a single checkpoint of one.

    If one of the threads is not there, nothing is removed. Each thread goes whole or not at all.
    """
    with session.saver(write=True) as saver:
        if at is not None:
            _delete_checkpoint(session, saver, threads, at, ns, dry_run=dry_run, yes=yes)
            return
        found = [_thread(saver, thread) for thread in dict.fromkeys(threads)]
        if not dry_run:
            session.out.confirm(f"Delete {_described(found)} of {session.printable_url}?", yes=yes)
        for thread in found:
            gone = dry_run or saver.delete_thread(thread.id)
            _tell_deleted(session, thread, dry_run=dry_run, gone=gone)


def _delete_checkpoint(
    session: Session, saver: SaverProtocol, threads: Sequence[str], at: str, ns: str | None, *, dry_run: bool, yes: bool
) -> None:
    if len(threads) != 1:
        raise ConfigError("--at removes a checkpoint of one thread: name one")
    config = addresses_of(saver, threads[0]).config(at, ns)
    checkpoint_id = config["configurable"]["checkpoint_id"]
    if not dry_run:
        session.out.confirm(f"Delete checkpoint {checkpoint_id} of thread {threads[0]!r}?", yes=yes)
        if not saver.delete_checkpoint(config):
            raise NotThereError(f"thread {threads[0]!r} has no checkpoint {checkpoint_id!r} any more")
    if session.out.as_json:
        session.out.record({"config": config, "deleted": not dry_run, "dry_run": dry_run})
    else:
        session.out.line("would delete " if dry_run else "deleted ", (checkpoint_id, "id"), " of ", (threads[0], "id"))


def _expiry(text: str) -> datetime | timedelta | None:
    if text == _FOREVER:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        try:
            return duration(text, "; a moment as 2027-01-31T12:00Z; or never")
        except click.BadParameter as error:
            error.param_hint = "'--expires'"
            raise
    return moment if moment.tzinfo else moment.astimezone()


def _thread(saver: SaverProtocol, thread_id: str) -> ThreadInfo:
    found = saver.get_thread(expect_thread(saver, thread_id))
    if found is None:
        raise _gone(thread_id)
    return found


def _gone(thread_id: str) -> NotThereError:
    return NotThereError(f"the thread {thread_id!r} has gone meanwhile")


def _described(threads: Sequence[ThreadInfo]) -> str:
    checkpoints, size = sum(each.checkpoints for each in threads), sum(each.size_bytes for each in threads)
    named = f"thread {threads[0].id!r}" if len(threads) == 1 else count_text(len(threads), "thread")
    return f"{named} with {count_text(checkpoints, 'checkpoint')} ({bytes_text(size)})"


def _undo_record(undo: Undo) -> dict[str, Any]:
    return {**effect_record(undo.effect), "args": [*undo.args], "kwargs": {**undo.kwargs}}


def _tell_left(session: Session, left: Sequence[Undo]) -> None:
    session.out.line()
    session.out.line(("effects of the steps that were left, not undone", "heading"))
    for undo in left:
        given = [*map(brief, undo.args), *(f"{name}={brief(value)}" for name, value in undo.kwargs.items())]
        with_args = f": {', '.join(given)}" if given else ""
        how = f"  undo with {undo.function}{with_args}" if undo.function else ""
        effect = undo.effect
        session.out.line("  ", (effect.name, "name"), f"  {effect.state}", how, (f"  (key {effect.key})", "dim"))


def _tell_new(
    session: Session, done: str, old: dict[str, Any], new: dict[str, Any], more: Mapping[str, Any] | None = None
) -> None:
    from_, to = old["configurable"], new["configurable"]
    if session.out.as_json:
        session.out.record({"config": new, "from": old, **(more or {})})
        return
    session.out.line(f"{done} ", (from_["checkpoint_id"], "id"), " of ", (from_["thread_id"], "id"))
    session.out.line("  thread      ", (to["thread_id"], "id"))
    session.out.line("  checkpoint  ", (to["checkpoint_id"], "id"))


def _tell_renamed(session: Session, done: str, thread: str, new: str) -> None:
    if session.out.as_json:
        session.out.record({"thread": new, "from": thread, "done": done})
    else:
        session.out.line(f"{done} ", (thread, "id"), " to ", (new, "id"))


def _tell_deleted(session: Session, thread: ThreadInfo, *, dry_run: bool, gone: bool) -> None:
    if session.out.as_json:
        session.out.record(
            {
                "thread": thread.id,
                "checkpoints": thread.checkpoints,
                "bytes": thread.size_bytes,
                "deleted": gone and not dry_run,
                "dry_run": dry_run,
            }
        )
        return
    done = "would delete " if dry_run else "deleted " if gone else "gone already: "
    size = f" with {count_text(thread.checkpoints, 'checkpoint')} ({bytes_text(thread.size_bytes)})"
    session.out.line(done, (thread.id, "id"), size)
