"""The page's server: files, the API, and the guard before both."""

from collections.abc import Collection
from importlib.resources import files
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from threadmark import SaverProtocol
from threadmark_cli.page.answers import answering, error_of
from threadmark_cli.page.api import About, Api
from threadmark_cli.page.live import Live
from threadmark_cli.page.parameters import Parameters
from threadmark_cli.page.security import Guard, Session

LOCAL = ("127.0.0.1", "localhost", "::1")
"""The names of this machine, to itself."""

_FILES = Path(str(files("threadmark_cli.page"))) / "static"


def create_app(
    saver: SaverProtocol,
    *,
    token: str,
    write: bool = False,
    hosts: Collection[str] = LOCAL,
    origins: Collection[str] = (),
    url: str = "",
    every: float = 1.0,
) -> "Page":
    """Return the ASGI app that serves the page of a saver's threads. It leaves the saver open.

    Args:
        saver: The saver. It may be read-only, unless `write` is set.
        token: The secret that lets a browser in, once, with the address `/?token=...`.
        write: Whether the page may fork and restore.
        hosts: The names under which the server is reached, without ports.
        origins: Addresses such as "https://agents.example.com" if another server passes requests on to this one.
        url: The database's URL for display: without a password.
        every: The seconds after which a thread that a browser follows is read again.
    """
    live = Live(saver, every=every)
    api = Api(saver, About(type(saver).__name__, url or repr(saver), write))

    async def index(_: Request) -> Response:
        return FileResponse(_FILES / "index.html")

    async def follow(request: Request) -> Response:
        asked = Parameters(request)
        with_list = asked.get("list") == "1"
        events = live.events(asked.get("thread") if with_list else asked.text("thread"), with_list=with_list)
        return StreamingResponse(events, media_type="text/event-stream")

    app = Starlette(
        routes=[
            Route("/", index, methods=["GET"]),
            *api.routes(),
            Route("/api/live", answering(follow), methods=["GET"]),
            Mount("/static", StaticFiles(directory=_FILES, check_dir=False)),
        ],
        exception_handlers={HTTPException: _failed, Exception: _failed},
    )
    return Page(Guard(app, session=Session(token), hosts=hosts, origins=origins), live)


class Page:
    """The ASGI app. The guard stands before everything, so that its headers are on every answer."""

    def __init__(self, guard: Guard, live: Live) -> None:
        self._guard = guard
        self.live = live
        """The live streams; close it before the server waits for open requests, as they never end."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self._guard(scope, receive, send)


async def _failed(_: Request, error: Exception) -> Response:
    return error_of(error)
