"""Opening sources and targets that are named by a path or a URL, with the saver whose tables they have."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import quote, unquote

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver

import threadmark
from threadmark import ConfigError, StoreError
from threadmark.bounded_sqlite import expect_plain_tables
from threadmark.errors import importing
from threadmark_langgraph.checkpointer import Checkpointer, wrap
from threadmark_langgraph.moving import sql

Database = str | os.PathLike[str]
"""A path or a URL."""

Owner = Literal["langgraph", "threadmark"]
"""The saver whose tables are meant."""

_POSTGRES = ("postgres://", "postgresql://")
_FILE = "sqlite:///"
_MIGRATE = "{missing}: pip install 'threadmark-langgraph[migrate]'"


class Contents(NamedTuple):
    """The savers whose checkpoints a database has."""

    langgraphs: bool
    threadmarks: bool


_NOTHING = Contents(langgraphs=False, threadmarks=False)


@contextmanager
def opened_source(source: Any, target: Any) -> Iterator[BaseCheckpointSaver[Any]]:
    """Open the checkpointer to move from: LangGraph's or Threadmark's, or the path or URL of a database."""
    if not isinstance(source, (str, os.PathLike)):
        yield source if isinstance(source, BaseCheckpointSaver) else wrap(source)
        return
    found = contents_of(source)
    if found == _NOTHING:
        raise _no_source(source, target)
    if found.langgraphs and (not found.threadmarks or is_same(source, target)):
        with saver_of("langgraph", source) as saver:
            yield saver
    elif found.langgraphs:
        raise ConfigError(
            f"{_label(source)} holds checkpoints of LangGraph's saver and of Threadmark's: give the saver of those "
            "that are meant (on the command line --from langgraph or --from threadmark)"
        )
    elif isinstance(target, (str, os.PathLike)) and contents_of(target) == (True, False):
        raise ConfigError(
            f"the source {_label(source)} holds Threadmark's checkpoints, and the target {_label(target)} LangGraph's: "
            "is it the wrong way round? The way back is threadmark_langgraph.export (on the command line --export)"
        )
    else:
        with saver_of("threadmark", source) as saver:
            yield saver


@contextmanager
def opened_target(target: Any) -> Iterator[Checkpointer]:
    """Open the Threadmark checkpointer to move to, or one for its path or URL."""
    if isinstance(target, Checkpointer):
        yield target
    elif isinstance(target, (str, os.PathLike)):
        with threadmark_saver(target) as saver:
            yield saver
    elif isinstance(target, BaseCheckpointSaver):
        raise ConfigError(
            f"the target is LangGraph's {type(target).__name__}: migrate moves to Threadmark, so give that saver "
            "second; the way back is threadmark_langgraph.export"
        )
    else:
        yield wrap(target)


@contextmanager
def opened_for_export(
    source: Any, target: Any, *, dry_run: bool
) -> Iterator[tuple[Checkpointer, BaseCheckpointSaver[Any]]]:
    """Open the Threadmark checkpointer to export from and LangGraph's to export to, or those for their names."""
    if isinstance(source, BaseCheckpointSaver) and not isinstance(source, Checkpointer):
        raise ConfigError(
            f"the source is LangGraph's {type(source).__name__}: export moves from Threadmark to LangGraph; "
            "the other way is threadmark_langgraph.migrate"
        )
    if isinstance(target, Checkpointer) or not isinstance(target, (str, os.PathLike, BaseCheckpointSaver)):
        raise ConfigError(
            f"the target is a {type(target).__name__}: export moves to one of LangGraph's savers; "
            "to another Threadmark saver it is threadmark_langgraph.migrate"
        )
    if isinstance(source, (str, os.PathLike)) and not contents_of(source).threadmarks:
        if _is_missing(source):
            raise _no_source(source, None)
        raise ConfigError(
            f"{_label(source)} holds no checkpoints of Threadmark, which export moves to LangGraph's saver: "
            "Threadmark's database comes first; the other way is migrate (the command without --export)"
        )
    opened: AbstractContextManager[BaseCheckpointSaver[Any]] = (
        nullcontext(target) if isinstance(target, BaseCheckpointSaver) else langgraph_saver(target, dry_run=dry_run)
    )
    with opened_target(source) as ours, opened as theirs:
        yield ours, theirs


@contextmanager
def saver_of(whose: Owner, database: Database) -> Iterator[BaseCheckpointSaver[Any]]:
    """Open the checkpointer of one of the two savers. Raises ConfigError if it has no checkpoints in the database."""
    found = contents_of(database)
    if _is_missing(database):
        raise _no_source(database, None)
    if not (found.langgraphs if whose == "langgraph" else found.threadmarks):
        raise ConfigError(f"{_label(database)} holds no checkpoints of {whose}")
    with (langgraph_saver if whose == "langgraph" else threadmark_saver)(database) as saver:
        yield saver


def contents_of(database: Database) -> Contents:
    """Return whose checkpoints a database has. Nothing is created."""
    name = os.fspath(database)
    if name.startswith(_POSTGRES):
        return _in_postgres(name)
    path = _path_of(name)
    if path is not None:
        return _in_sqlite(path) if Path(path).is_file() else _NOTHING
    with threadmark.open(name) as saver:  # a scheme of Threadmark's alone
        return Contents(langgraphs=False, threadmarks=saver.has_tables())


def is_same(one: Database, other: Any) -> bool:
    """Return whether two names certainly mean the same database."""
    if not isinstance(other, (str, os.PathLike)):
        return False
    names = os.fspath(one), os.fspath(other)
    if any(name.startswith(_POSTGRES) for name in names):
        return all(name.startswith(_POSTGRES) for name in names) and _server(names[0]) == _server(names[1])
    paths = [_path_of(name) for name in names]
    return None not in paths and len({Path(path).resolve() for path in paths if path is not None}) == 1


@contextmanager
def langgraph_saver(database: Database, *, dry_run: bool = False) -> Iterator[BaseCheckpointSaver[Any]]:
    """Open LangGraph's own saver for a path or URL. In a dry run, a missing file is replaced by a saver in memory."""
    name = os.fspath(database)
    if name.startswith(_POSTGRES):
        with importing(f"{_MIGRATE}, or langgraph-checkpoint-postgres"):
            import psycopg
            from langgraph.checkpoint.postgres import PostgresSaver

        with _failing_as_store(psycopg.Error), PostgresSaver.from_conn_string(name) as saver:
            yield saver
        return
    with importing(f"{_MIGRATE}, or langgraph-checkpoint-sqlite"):
        from langgraph.checkpoint.sqlite import SqliteSaver

    path = _path_of(name)
    if path is None:
        raise ConfigError(
            f"LangGraph has no saver for {_label(name)}: give a file, or a URL that begins with postgresql://"
        )
    if dry_run and not Path(path).is_file():
        yield InMemorySaver()
        return
    with _failing_as_store(sqlite3.Error), SqliteSaver.from_conn_string(path) as file:
        yield file


@contextmanager
def threadmark_saver(database: Database) -> Iterator[Checkpointer]:
    """Open a Threadmark checkpointer for a path or URL."""
    name = os.fspath(database)
    if name.startswith(_FILE) or (path := _path_of(name)) is None:
        url = name
    else:
        url = f"sqlite:///{quote(str(Path(path).absolute()))}"
    with threadmark.open(url) as saver:
        yield wrap(saver)


def _no_source(source: Database, target: Any) -> ConfigError:
    turned = isinstance(target, (str, os.PathLike)) and contents_of(target).langgraphs and not is_same(source, target)
    hint = f": {_label(target)} has LangGraph's checkpoints, and the source comes first" if turned else ""
    if _is_missing(source):
        return ConfigError(f"there is no file {_path_of(os.fspath(source))!r} to move from{hint}")
    return ConfigError(f"{_label(source)} holds no tables with checkpoints{hint}")


def _is_missing(database: Database) -> bool:
    """Return whether the name means a file that does not exist."""
    name = os.fspath(database)
    path = None if name.startswith(_POSTGRES) else _path_of(name)
    return path is not None and not Path(path).is_file()


def _label(database: Database) -> str:
    """Return a database as messages name it, without a password."""
    name = os.fspath(database)
    if name.startswith(_POSTGRES):
        return "the Postgres database"
    path = _path_of(name)
    return f"{name.partition(':')[0]}:..." if path is None else repr(path)


def _path_of(name: str) -> str | None:
    """Return the file that a path or URL names; None if it names no file."""
    if name.startswith(_FILE):
        return unquote(name.removeprefix(_FILE).partition("?")[0])
    scheme, colon, _ = name.partition(":")
    return None if "://" in name or (colon and len(scheme) > 1 and scheme.isidentifier()) else name


def _in_sqlite(path: str) -> Contents:
    uri = f"{Path(path).absolute().as_uri()}?mode=rw"  # a read-only connection would leave a log's files behind
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            expect_plain_tables(connection, ("checkpoints", "writes"), path)
            ((langgraphs, threadmarks),) = connection.execute(sql.SQLITE_CONTENTS)
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without the details
        if code == sqlite3.SQLITE_NOTADB:
            return _NOTHING
        hint = _COPY_IT if code == sqlite3.SQLITE_READONLY else ""
        raise StoreError(f"{path!r} cannot be read: {error}{hint}") from error
    return Contents(bool(langgraphs), bool(threadmarks))


_COPY_IT = " (a file is only moved from where this user may write: copy it to such a folder)"


def _in_postgres(url: str) -> Contents:
    with importing(f"{_MIGRATE}, or psycopg"):
        import psycopg

    with _failing_as_store(psycopg.Error, "the Postgres database"), psycopg.connect(url) as connection:
        found = connection.execute(sql.POSTGRES_CONTENTS).fetchone()
    return Contents(*map(bool, found or _NOTHING))


def _server(url: str) -> Any:
    """Return the parameters that choose the database of a URL, without user and password."""
    from psycopg.conninfo import conninfo_to_dict

    parameters = conninfo_to_dict(url)
    return [parameters.get(key) for key in ("host", "hostaddr", "port", "dbname", "options")]


@contextmanager
def _failing_as_store(kind: type[Exception], what: str = "LangGraph's database") -> Iterator[None]:
    """A block in which an error of a driver becomes a StoreError."""
    try:
        yield
    except kind as error:
        raise StoreError(f"{what} cannot be used: {' '.join(str(error).split())}") from error
