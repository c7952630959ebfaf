"""The Postgres savers under LangGraph's names. They need the package threadmark-postgres."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Self, Unpack

from threadmark import MissingDependencyError
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
        try:
            from threadmark_postgres import PostgresSaver as PostgresBackend
        except MissingDependencyError:  # it says what to install
            raise
        except ImportError as missing:
            raise MissingDependencyError(
                f"{missing}: pip install 'threadmark-langgraph[postgres]'", name=missing.name
            ) from missing

        on_unmoved, rest = split_options(options)
        super().__init__(PostgresBackend(conn, **rest), serde=serde, on_unmoved=on_unmoved)
        self.conn = conn


class PostgresSaver(_Postgres):
    """Keeps everything in Postgres, for any number of threads, event loops and processes.

    `conn` is a connection or a pool, as LangGraph's saver takes it, or simply a URL, which is better: connections
    that break are replaced. `pipe`, and `pipeline` of `from_conn_string`, are accepted because LangGraph's saver has
    them, and change nothing: a put is one round trip in any case. The options are those of
    `threadmark_postgres.PostgresSaver`, and `on_unmoved`: "raise" makes an error of threads of LangGraph's own saver
    that were not moved.
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
        """A saver for this database, closed in the end."""
        with cls(conn_string, serde=serde, **options) as saver:
            yield saver


class AsyncPostgresSaver(_Postgres):
    """`PostgresSaver` under LangGraph's asyncio name; `conn` may be an asyncio connection or pool."""

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
        """A saver for this database, closed in the end."""
        async with cls(conn_string, serde=serde, **options) as saver:
            yield saver

    async def setup(self) -> None:  # type: ignore[override]  # LangGraph's name for it, which is awaited here
        """Like `asetup`."""
        await self.asetup()


class ShallowPostgresSaver(PostgresSaver):
    """A `PostgresSaver` that keeps the newest checkpoint of each namespace, as the one of this name in LangGraph does.

    It is a `PostgresSaver` with `keep_last=1`; another number keeps so many. What a kept checkpoint is read from stays
    (delta channels), and so do the calls of subgraphs that are under way. A checkpoint that is gone is not found by its
    id, where LangGraph's answers with another one.
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
    """`ShallowPostgresSaver` under LangGraph's asyncio name; `conn` may be an asyncio connection or pool."""

    def __init__(
        self,
        conn: Any,
        pipe: object = None,
        serde: "SerializerProtocol | None" = None,
        **options: "Unpack[PostgresOptions]",
    ) -> None:
        options.setdefault("keep_last", 1)
        super().__init__(conn, pipe, serde, **options)
