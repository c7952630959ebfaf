"""`prune` and `retention`: the commands that remove old checkpoints and threads."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import click

from threadmark.model import count_text
from threadmark.types import Problem, PruneReport, RetentionReport
from threadmark_cli.addresses import expect_thread
from threadmark_cli.command import command
from threadmark_cli.commands.editing import dry_run_option, yes_option
from threadmark_cli.completion import thread_ids
from threadmark_cli.exits import DONE, WRONG
from threadmark_cli.output.quantities import bytes_text
from threadmark_cli.parameters import duration, json_object, size
from threadmark_cli.session import Session

Result = TypeVar("Result")


@command(
    "prune",
    examples="""
    threadmark prune support-42                               # only the newest checkpoint stays
    threadmark prune --all --keep-last 10 --dry-run           # what would go of all threads
    threadmark prune --all --keep-last 10 --older-than 30d    # all that is neither new nor recent
    """,
)
@click.argument("threads", metavar="[THREAD...]", nargs=-1, shell_complete=thread_ids)
@click.option("--all", "every", is_flag=True, help="Of all threads.")
@click.option("--keep-last", type=click.IntRange(min=1), metavar="N", help="How many stay of a namespace [default: 1].")
@click.option("--older-than", type=duration, metavar="TIME", help="Only what is older: 30d, 12h, 2w.")
@click.option(
    "--strategy",
    type=click.Choice(["keep_latest", "delete"]),
    default="keep_latest",
    show_default=True,
    help="With delete, everything of the threads that are named.",
)
@click.option("--missing-ok", is_flag=True, help="A thread that is not there is no error.")
@dry_run_option
@yes_option
def prune(
    session: Session,
    *,
    threads: tuple[str, ...],
    every: bool,
    dry_run: bool,
    yes: bool,
    **rule: Any,
) -> int:
    """Remove old checkpoints.

    The newest of every namespace stays, with those that are needed to read the rest. After an interrupt each thread
    is pruned or as it was, and the same command goes on. With --all, damaged ones are left alone: then it ends with 1.
    """
    if every == bool(threads):
        raise click.UsageError("Name the threads, or give --all.")
    rule["missing_ok"] = rule["missing_ok"] or every
    with session.saver(write=True) as saver:
        if not rule["missing_ok"]:
            for thread in threads:
                expect_thread(saver, thread)
        prune = partial(saver.prune, None if every else list(threads), **rule)
        pruned = _asked_first(session, prune, "Pruning", _pruned_text, dry_run=dry_run, yes=yes)
    if session.out.as_json:
        session.out.record({**pruned._asdict(), "problems": _records(pruned.problems), "dry_run": dry_run})
    else:
        session.out.line("would remove " if dry_run else "removed ", _pruned_text(pruned))
        if pruned.kept_for_deltas:
            keeps = "would keep " if dry_run else "kept "
            old = count_text(pruned.kept_for_deltas, "old checkpoint")
            session.out.line(keeps, old, ", because delta channels of newer ones are read from there")
    return _warned(session, pruned.problems)


@command(
    "retention",
    examples="""
    threadmark retention                                      # only what has expired
    threadmark retention --idle-for 90d --keep-last 10 --dry-run
    threadmark retention --max-bytes 20GB --yes               # for a nightly job
    """,
)
@click.option(
    "--keep-last", type=click.IntRange(min=1), metavar="N", help="Prune the threads that stay, as prune does."
)
@click.option("--older-than", type=duration, metavar="TIME", help="Prune what is older.")
@click.option(
    "--idle-for", type=duration, metavar="TIME", help="Remove threads in which nothing was stored for so long."
)
@click.option("--max-bytes", type=size, metavar="SIZE", help="Remove the threads that were idle longest beyond this.")
@click.option("--metadata", metavar="JSON", help="Only threads whose metadata has these keys and values.")
@dry_run_option
@yes_option
def retention(
    session: Session,
    *,
    keep_last: int | None,
    older_than: timedelta | None,
    idle_for: timedelta | None,
    max_bytes: int | None,
    metadata: str | None,
    dry_run: bool,
    yes: bool,
) -> int:
    """Remove expired threads, and all that the options select, once.

    Threads under a lease are left alone, and so are damaged ones: then it ends with 1.
    """
    with session.saver(write=True) as saver:
        retain = partial(
            saver.apply_retention,
            keep_last=keep_last,
            older_than=older_than,
            idle_for=idle_for,
            max_bytes=max_bytes,
            metadata=json_object(metadata, "--metadata"),
        )
        report = _asked_first(session, retain, "Looking at threads", _report_text, dry_run=dry_run, yes=yes)
    if session.out.as_json:
        pruned = {**report.pruned._asdict(), "problems": _records(report.pruned.problems)}
        session.out.record({**report._asdict(), "pruned": pruned, "problems": _records(report.problems)})
    else:
        session.out.line(str(report))
    return _warned(session, report.problems)


def _records(problems: Sequence[Problem]) -> list[dict[str, str]]:
    return [problem._asdict() for problem in problems]


def _warned(session: Session, problems: Sequence[Problem]) -> int:
    """Name the damaged threads. Returns the exit code."""
    for problem in problems:
        session.out.warn(f"{problem.location}: {problem.problem}")
    return WRONG if problems else DONE


def _asked_first(
    session: Session,
    remove: Callable[..., Result],
    label: str,
    described: Callable[[Result], str],
    *,
    dry_run: bool,
    yes: bool,
) -> Result:
    """Remove something, after a dry run and a question. Returns the removal, or the planned one."""

    def done(*, dry_run: bool) -> Result:
        with session.out.progress(label) as progress:
            return remove(dry_run=dry_run, progress=progress)

    if not (dry_run or yes):
        session.out.confirm(f"Remove {described(done(dry_run=True))} of {session.printable_url}?", yes=False)
    return done(dry_run=dry_run)


def _pruned_text(pruned: PruneReport) -> str:
    return (
        f"{count_text(pruned.checkpoints, 'checkpoint')} and {count_text(pruned.writes, 'pending write')} "
        f"of {count_text(pruned.threads, 'thread')} ({bytes_text(pruned.size_bytes)})"
    )


def _report_text(report: RetentionReport) -> str:
    whole = report.expired + report.idle + report.for_space
    return (
        f"{count_text(whole, 'thread')} ({bytes_text(report.size_bytes)}), "
        f"and of others {count_text(report.pruned.checkpoints, 'checkpoint')} ({bytes_text(report.pruned.size_bytes)})"
    )
