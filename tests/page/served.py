"""The page's server on a thread, over a real socket, and a client that has its cookie."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, NamedTuple

import httpx

from patience import PATIENCE, wait_until
from threadmark import SaverProtocol, new_id
from threadmark_cli.page.app import Page, create_app
from threadmark_cli.page.serving import PageServer

TOKEN = "let-me-in"  # noqa: S105 - of a server that only this test reaches
_VERSIONS = count(1)


class Served(NamedTuple):
    """A running server."""

    page: Page
    server: PageServer
    base: str

    def stranger(self) -> httpx.Client:
        """Return a client without a cookie."""
        return httpx.Client(base_url=self.base, trust_env=False, timeout=PATIENCE)

    @contextmanager
    def client(self) -> Iterator[httpx.Client]:
        """Yield the client that the token lets in, as a browser's page is. There can be one."""
        with self.stranger() as client:
            assert client.get("/", params={"token": TOKEN}).status_code == 303
            client.headers["origin"] = self.base
            yield client


@contextmanager
def served(saver: SaverProtocol, **options: Any) -> Iterator[Served]:
    """Serve a saver's threads."""
    page = create_app(saver, token=TOKEN, every=0.02, **options)
    started = threading.Event()
    server = PageServer(page, started.set)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])))
        thread.start()
        try:
            assert started.wait(PATIENCE)
            yield Served(page, server, f"http://127.0.0.1:{listening.getsockname()[1]}")
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
            assert not thread.is_alive()


def put(
    saver: SaverProtocol, thread: str, values: dict[str, Any], after: dict[str, Any] | None = None, *, ns: str = ""
) -> dict[str, Any]:
    """Store a checkpoint in which every channel is new."""
    config = after or {"configurable": {"thread_id": thread, "checkpoint_ns": ns}}
    checkpoint_id = new_id()
    versions = dict.fromkeys(values, next(_VERSIONS))
    checkpoint: Any = {
        "v": 4,
        "id": checkpoint_id,
        "ts": "2026-11-22T00:00:00+00:00",
        "channel_values": values,
        "channel_versions": versions,
        "versions_seen": {},
        "updated_channels": None,
    }
    return saver.put(config, checkpoint, {"source": "loop", "step": len(values)}, versions)


def id_of(config: dict[str, Any]) -> str:
    """Return the checkpoint that a configuration names."""
    return str(config["configurable"]["checkpoint_id"])


def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    wait_until(is_so, "it never is so")
