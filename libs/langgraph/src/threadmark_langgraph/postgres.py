"""The Postgres savers under LangGraph's names. They need the package threadmark-postgres."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Self, Unpack

from threadmark.errors import importing
from threadmark_langgraph.checkpointer import Checkpointer
from threadmark_langgraph.unmoved import split_options

if TYPE_CHECKING:
    from langgraph.checkpoint.serde.base import SerializerProtocol

    from threadmark_langgraph.options import PostgresOptions


class _Postgres(Checkpointer):
    def __init__(
        self,
        conn: Any,
        pipe: object = None,  # noqa: ARG002 - LangGraph's argument; a put is one round trip without it
        serde: "SerializerProtocol | None" = None,
        **options: "Unpack[PostgresOptions]",
    ) -> None:
        with importing("{missing}: pip install 'threadmark-langgraph[postgres]'"):
            from threadmark_postgres import PostgresSaver as PostgresBackend

        on_unmoved, rest = split_options(options)
        super().__init__(PostgresBackend(conn, **rest), serde=serde, on_unmoved=on_unmoved)
        self.conn = conn


class PostgresSaver(_Postgres):
    """Keeps everything in Postgres, for any number of threads, event loops and processes.

    `conn` is a connection or a pool, as LangGraph's saver takes it, or a URL. Prefer a URL: the saver then replaces
    connections that break. The arguments `pipe`, and `pipeline` of `from_conn_string`, exist because LangGraph's saver
    has them, and change nothing: a put is one round trip in any case. The options are those of
    `threadmark_postgres.PostgresSaver`, and `on_unmoved`: with "raise", threads of LangGraph's own saver that were not
    moved raise an error instead of a warning.
    """

    @classmethod
    @contextmanager
    def from_conn_string(
        cls,
        conn_string: str,
        *,
        pipeline: bool = False,  # noqa: ARG003 - LangGraph's switch; a put is one round trip without it
        serde: "SerializerProtocol | None" = None,
        **options: "Unpack[PostgresOptions]",
    ) -> Iterator[Self]:
        """Open a saver for this database, and close it at the end of the block."""
        with cls(conn_string, serde=serde, **options) as saver:
            yield saver


class AsyncPostgresSaver(_Postgres):
    """`PostgresSaver` under LangGraph's asyncio name. `conn` may also be an asyncio connection or pool."""

    @classmethod
    @asynccontextmanager
    async def from_conn_string(
        cls,
        conn_string: str,
        *,
        pipeline: bool = False,  # noqa: ARG003 - LangGraph's switch; a put is one round trip without it
        serde: "SerializerProtocol | None" = None,
        **options: "Unpack[PostgresOptions]",
    ) -> AsyncIterator[Self]:
        """Open a saver for this database, and close it at the end of the block."""
        async with cls(conn_string, serde=serde, **options) as saver:
            yield saver

    async def setup(self) -> None:  # type: ignore[override]  # LangGraph's name for it, which is awaited here
        """Like `asetup`."""
        await self.asetup()


class ShallowPostgresSaver(PostgresSaver):
    """A `PostgresSaver` that keeps only the newest checkpoint of each namespace, as LangGraph's class does.

    It is a `PostgresSaver` with `keep_last=1`; pass another number to keep more. Checkpoints that a kept one is read
    from (delta channels) stay, and so do the calls of subgraphs that are under way. If you ask for a removed checkpoint
    by its id, you get none; LangGraph's class returns another one.
    """

    def __init__(
        self,
        conn: Any,
        pipe: object = None,
        serde: "SerializerProtocol | None" = None,
        **options: "Unpack[PostgresOptions]",
    ) -> None:
        options.setdefault("keep_last", 1)
        super().__init__(conn, pipe, serde, **options)


class AsyncShallowPostgresSaver(AsyncPostgresSaver):
    """`ShallowPostgresSaver` under LangGraph's asyncio name. `conn` may also be an asyncio connection or pool."""

    def __init__(
        self,
        conn: Any,
        pipe: object = None,
        serde: "SerializerProtocol | None" = None,
        **options: "Unpack[PostgresOptions]",
    ) -> None:
        options.setdefault("keep_last", 1)
        super().__init__(conn, pipe, serde, **options)
