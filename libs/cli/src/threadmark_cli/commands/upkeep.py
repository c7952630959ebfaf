"""`setup`, `upgrade`, `ddl`, `backup`, `reencrypt`: the upkeep of a database, apart from its threads."""

from pathlib import Path
from typing import Any

import click

from threadmark import ConfigError
from threadmark.errors import importing
from threadmark.model import count_text
from threadmark.types import Progress
from threadmark_cli.addresses import expect_thread
from threadmark_cli.backup import back_up
from threadmark_cli.command import command
from threadmark_cli.commands.editing import yes_option
from threadmark_cli.completion import thread_ids
from threadmark_cli.exits import RefusedError
from threadmark_cli.items import items_if_any
from threadmark_cli.opening import expect_file, file_of, parts_of, printable_url
from threadmark_cli.output.quantities import bytes_text
from threadmark_cli.session import Session

_POSTGRES = ("postgres://", "postgresql://")

partitions_option = click.option(
    "--partitions", type=click.IntRange(min=1), metavar="N", help="Postgres: part new tables by thread into so many."
)

distribute_option = click.option(
    "--distribute",
    type=click.Choice(["citus"]),
    help="Postgres: distribute new tables by thread over the nodes of a cluster.",
)


@command(
    "setup",
    examples="""
    threadmark setup agents.db                                     # makes the file
    threadmark setup postgresql://deploy@host/agents -o schema=agents
    """,
)
@partitions_option
@distribute_option
def setup(session: Session, *, partitions: int | None, distribute: str | None) -> None:
    """Create the tables of a new database, or bring those of an earlier release to the current format.

    Whatever is done first does so by itself; this is for a deployment whose role may change tables. It may be repeated.
    """
    with session.saver(write=True, create=True) as saver:
        if partitions is None and distribute is None:
            saver.setup()
        else:
            _expect_postgres(session)
            with_layout: Any = saver
            with_layout.setup(partitions=partitions, distribute=distribute)
    if session.out.as_json:
        session.out.record({"database": session.printable_url, "ready": True})
    else:
        session.out.line("ready: ", session.printable_url)


@command(
    "upgrade",
    examples="""
    threadmark upgrade agents.db                     # when no process of the earlier release is left
    threadmark upgrade postgresql://deploy@host/agents --yes
    """,
)
@yes_option
def upgrade(session: Session, *, yes: bool) -> None:
    """Let every process write in the newest format that this release knows.

    Until then, this release and the earlier one share the database, and you can go back to the earlier one.
    """
    session.expect_no_owner()
    with session.saver(write=True) as saver:
        due = saver.upgrade(dry_run=True)
        if due.after > due.before:
            session.out.confirm(
                f"Write {session.printable_url} in format {due.after} from now on? Processes older than {due.release} "
                "will be refused, and there is no way back to them but a backup.",
                yes=yes,
            )
            due = saver.upgrade()
    if session.out.as_json:
        session.out.record({"database": session.printable_url, "before": due.before, "after": due.after})
    elif due.after > due.before:
        session.out.line(
            f"upgraded from format {due.before} to {due.after}: processes older than {due.release} are refused"
        )
    else:
        session.out.line(f"nothing to upgrade: every process writes format {due.after}, the newest of this release")


def _expect_postgres(session: Session) -> None:
    if not session.url.startswith(_POSTGRES):
        raise ConfigError("--partitions and --distribute are for Postgres, whose tables can be divided")


@command(
    "ddl",
    examples="""
    threadmark ddl postgresql:// > setup.sql                    # for whoever may create tables
    threadmark ddl postgresql:// -o schema=agents --since 1     # from format 1 to the current one
    threadmark ddl sqlite:// | sqlite3 agents.db
    """,
)
@partitions_option
@distribute_option
@click.option(
    "--since", type=click.IntRange(min=0), default=0, metavar="FORMAT", help="The format that is there; 0 for none."
)
def ddl(session: Session, *, partitions: int | None, distribute: str | None, since: int) -> None:
    """Print the statements of setup, as SQL. No database is asked."""
    script = _script(session, partitions, distribute, since)
    if session.out.as_json:
        session.out.record({"sql": script})
        return
    for line in script.rstrip("\n").split("\n"):
        session.out.line(line)


def _script(session: Session, partitions: int | None, distribute: str | None, since: int) -> str:
    url = session.url
    if url.startswith(_POSTGRES):
        with importing("Postgres needs its package: pip install 'threadmark[postgres]'"):
            from threadmark_postgres import ddl as postgres_ddl
        schema = session.saver_options().get("schema")
        return postgres_ddl(schema, partitions=partitions, distribute=distribute, since=since)
    if partitions is not None or distribute is not None:
        _expect_postgres(session)
    if url.startswith("sqlite:"):
        from threadmark_sqlite import ddl as sqlite_ddl

        return sqlite_ddl(since=since)
    if parts_of(url):
        raise RefusedError(f"{session.printable_url}: name one database, because each has tables of its own")
    raise RefusedError(f"{session.printable_url} has no tables, and so nothing to be created")


@command(
    "backup",
    examples="""
    threadmark backup agents.db agents-2026-11-22.db
    """,
)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def backup(session: Session, *, file: Path) -> None:
    """Copy a SQLite database to a new file, while others go on writing to it.

    The copy is of one moment, and is there whole or not at all. Postgres and Redis have their own tools for this.
    """
    session.expect_no_owner()
    source = file_of(session.url)
    if source is None:
        raise RefusedError(_other_tool(session.url))
    expect_file(source)
    with session.out.progress("Copying pages") as progress:
        size = back_up(source, file, lambda done, total: progress(Progress(done, total, "")))
    if session.out.as_json:
        session.out.record({"database": str(source), "backup": str(file), "bytes": size})
    else:
        session.out.line("copied ", str(source), " to ", (str(file), "name"), f" ({bytes_text(size)})")


def _other_tool(url: str) -> str:
    if url.startswith(_POSTGRES):
        return (
            "Postgres has pg_dump, whose copy is of one moment too: "
            "pg_dump --format=custom --file=agents.dump URL (and pg_restore)"
        )
    if url.startswith("redis"):
        return "Redis has snapshots of its own: redis-cli -u URL --rdb agents.rdb"
    if parts_of(url):
        return f"{printable_url(url)}: name one database, because a copy is that of one"
    return f"{url.partition(':')[0]} databases have no file to copy"


@command(
    "reencrypt",
    examples="""
    threadmark reencrypt --keyring keys.json                     # everything, with the newest key
    threadmark reencrypt --keyring keys.json --plain seal        # rows that are not encrypted yet, too
    """,
)
@click.argument("thread", required=False, shell_complete=thread_ids)
@click.option(
    "--plain",
    type=click.Choice(["refuse", "seal"]),
    default="refuse",
    show_default=True,
    help="What to do with rows that were stored without a keyring.",
)
@yes_option
def reencrypt(session: Session, *, thread: str | None, plain: Any, yes: bool) -> None:
    """Encrypt everything that is stored, or one thread, with the newest key of the keyring.

    Everything includes the items of stores and the values of the cache of nodes.

    An interrupt loses nothing: the same command goes on. Keep the old keys until it is done.
    """
    with session.saver(write=True) as saver:
        if thread is not None:
            expect_thread(saver, thread)
        if plain == "seal":
            session.out.confirm(
                f"Encrypt the plain rows of {session.printable_url}? Afterwards you cannot read them without the keys.",
                yes=yes,
            )
        if thread is None:
            items_if_any(saver, session.out)  # the package that it imports seals its rows
        with session.out.progress("Encrypting threads") as progress:
            rows = saver.reencrypt(thread, plain=plain, progress=progress)
    if session.out.as_json:
        session.out.record({"rows": rows})
    else:
        session.out.line(f"{count_text(rows, 'row')} encrypted")
