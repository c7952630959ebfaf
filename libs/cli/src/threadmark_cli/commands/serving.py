"""`threadmark serve`: the page, for a browser on this machine."""

import ipaddress
import os
import sys
import webbrowser
from threading import Thread

import click

from threadmark.errors import importing
from threadmark_cli.command import command
from threadmark_cli.session import Session


@command(
    "serve",
    examples="""
    threadmark serve agents.db                   # open the page in a browser; it only reads
    threadmark serve --write agents.db           # with forks and restores
    threadmark serve --port 8123 --no-open       # print the address, for a forwarded port (ssh -L 8123:127.0.0.1:8123)
    """,
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port (by default a free one).")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--public-url", metavar="URL", help="The address that people use, where a proxy stands before the page.")
@click.option("--write", is_flag=True, help="Let the page fork and restore; without it, nothing can be changed.")
@click.option("--open/--no-open", "opens", default=None, help="Whether to open a browser (by default on a desktop).")
def serve(session: Session, *, port: int, host: str, public_url: str | None, write: bool, opens: bool | None) -> None:
    """Show threads in the browser: a page with their timelines, states and differences.

    The address that is printed lets in the browser that opens it first, and no other. Ctrl-C ends the page.
    """
    with importing("the page needs a web server ({missing}): pip install 'threadmark[page]'"):
        from threadmark_cli.page import serving

    if not _is_local(host):
        session.out.warn(
            f"on {host} the page can be reached from other machines, and what it sends is not encrypted: "
            "an ssh tunnel or a proxy with TLS is safer"
        )

    def started(address: str) -> None:
        if session.out.as_json:
            session.out.record({"url": address})
        else:
            session.out.line("The page is at ", (address, "id"))
            session.out.note("It opens once, in one browser. Ctrl-C ends it.")
        session.out.flush()
        if opens or (opens is None and _has_desktop()):
            Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    with session.saver(write=write) as saver:
        address = serving.Address(host, port, public_url)
        serving.serve(saver, address, write=write, url=session.printable_url, on_start=started)


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


_DESKTOPS = ("win32", "darwin")


def _has_desktop() -> bool:
    """Whether a browser would open in a window. One for terminals would take over this one."""
    if not sys.stdout.isatty():
        return False
    if sys.platform in _DESKTOPS:
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
