"""The two ends of a proxy, either of which may be gone at any moment."""

import contextlib
import socket


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
