"""What proxies are made of: a listener, and the two ends of a connection, either of which may be gone at any moment."""

import contextlib
import socket
import threading
from collections.abc import Callable


def listen(connected: Callable[[socket.socket], None]) -> socket.socket:
    """Accept connections on a free port until the listener, which is returned, is closed.

    One thread passes each of them to `connected`.
    """
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            connected(client)

    threading.Thread(target=accept, daemon=True).start()
    return listener


def send(end: socket.socket, data: bytes) -> None:
    """Send this, if anybody is there."""
    with contextlib.suppress(OSError):  # the other side is gone, and what waits for a reply will notice
        end.sendall(data)


def shut(end: socket.socket) -> None:
    """Tell the other side that nothing more will come."""
    with contextlib.suppress(OSError):  # closed already
        end.shutdown(socket.SHUT_RDWR)


def received(end: socket.socket) -> bytes:
    """What came next; nothing where the other side is gone."""
    try:
        return end.recv(1 << 20)
    except OSError:
        return b""
