"""Serving the page: a socket, uvicorn on it, and an end that does not wait for live streams."""

import asyncio
import secrets
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import NamedTuple, cast
from urllib.parse import urlsplit

import uvicorn

from threadmark import ConfigError, SaverProtocol
from threadmark_cli.page.app import LOCAL, Page, create_app
from threadmark_cli.page.connections import MOST_WAITING, PageConnection, Waiting, quiet

_LONGEST_HEAD = 128 * 1024
"""Bytes of a request's line and headers: a path or an id may be long, and every byte of it three characters."""

_LAST_SECONDS = 5
"""How long answers that were begun may take once the server is to end."""


class Address(NamedTuple):
    """The server's socket, and its address for browsers."""

    host: str = "127.0.0.1"
    port: int = 0
    """0 for a free one."""
    public: str | None = None
    """Such as "https://agents.example.com", if another server passes requests on to this one."""


class PageServer(uvicorn.Server):
    """Ends at the first Ctrl-C without an error, and ends the live streams first: they would go on for ever."""

    def __init__(self, app: Page, on_start: Callable[[], None]) -> None:
        config = uvicorn.Config(
            app,
            http=cast("type[asyncio.Protocol]", partial(PageConnection, waiting=Waiting())),
            ws="none",
            lifespan="off",
            h11_max_incomplete_event_size=_LONGEST_HEAD,
            timeout_graceful_shutdown=_LAST_SECONDS,
            # asyncio accepts so many at once, and twice more, before the first of them is looked at.
            backlog=MOST_WAITING // 2,
            log_config=None,
            access_log=False,
            server_header=False,
        )
        super().__init__(config)
        self._app = app
        self._on_start = on_start
        quiet("uvicorn.error", "asyncio")

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, and say so."""
        for listening in sockets or []:
            # asyncio does so for its own sockets; without it, each answer waits for the 40 ms of a delayed ACK.
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await super().startup(sockets)
        self._on_start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the live streams, and then everything else."""
        self._app.live.close()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        """End; at the second signal without waiting for anybody. The signal is not raised again afterwards."""
        self.force_exit = self.should_exit
        self.should_exit = True


def serve(saver: SaverProtocol, address: Address, *, write: bool, url: str, on_start: Callable[[str], None]) -> None:
    """Serve the page until a signal ends it, then close the saver.

    Args:
        saver: The saver.
        address: The address to listen on.
        write: Whether the page may fork and restore.
        url: The database's URL for display: without a password.
        on_start: A function that is called with the address to open, once it answers.
    """
    public = None if address.public is None else _origin(address.public)
    with _listening(address) as listening:
        token = secrets.token_urlsafe(24)
        base = public or f"http://{_in_url(address.host)}:{listening.getsockname()[1]}"
        hosts = {*LOCAL, address.host, *([urlsplit(public).hostname or ""] if public else [])}
        app = create_app(saver, token=token, write=write, hosts=hosts, origins=[public] if public else [], url=url)
        server = PageServer(app, lambda: on_start(f"{base}/?token={token}"))

        async def main() -> None:
            try:
                await server.serve([listening])
            finally:
                await saver.aclose()

        # A KeyboardInterrupt may come before uvicorn takes care of it.
        with suppress(KeyboardInterrupt), asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(main())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return what makes the event loop, or None for the default one. On Windows psycopg refuses that one."""
    return asyncio.SelectorEventLoop if sys.platform == "win32" else None


def _listening(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family)
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"cannot serve the page on {_in_url(address.host)}:{address.port} ({error}): "
            "choose another --port, or leave it out for a free one"
        ) from error


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _origin(url: str) -> str:
    """Return the origin of a URL, as browsers define it. Raises ConfigError if it is more or less than one."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").encode("idna").decode(), parts.port
    except ValueError:  # brackets without an address, a port beyond all ports, a name that cannot be one
        parts, host, port = urlsplit(""), "", None
    if parts.scheme not in _PORTS or not host or parts.path not in ("", "/") or parts.query:
        raise ConfigError(
            f"{url!r} is not the address of a server: use one such as https://agents.example.com, without a path"
        )
    origin = f"{parts.scheme}://{_in_url(host)}".lower()
    return origin if port in (None, _PORTS[parts.scheme]) else f"{origin}:{port}"


_PORTS = {"http": 80, "https": 443}
"""The ports that browsers leave out."""
