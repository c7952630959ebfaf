"""The parts of proxies: a listener, and the two ends of a connection, either of which may be gone at any moment."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator


class Listener:
    """Accepts connections on a free port until it is closed. One thread passes each of them to `connected`."""

    def __init__(self, connected: Callable[[socket.socket], None]) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._connected = connected
        self._closed = False
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Accept no more. The socket is closed when its thread has left it, for the reason that `Joined` gives."""
        self._closed = True
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
            self._thread.join(60)
        self._socket.close()

    def _accept(self) -> None:
        while True:
            client, _ = self._socket.accept()
            if self._closed:
                client.close()
                return
            self._connected(client)


def send(end: socket.socket, data: bytes) -> None:
    """Send this, if anybody is there."""
    with contextlib.suppress(OSError):  # the other side is gone, and the waiting thread will notice
        end.sendall(data)


def shut(end: socket.socket) -> None:
    """Tell the other side that nothing more will come."""
    with contextlib.suppress(OSError):  # closed already
        end.shutdown(socket.SHUT_RDWR)


def received(end: socket.socket) -> bytes:
    """The next bytes; none if the other side is gone."""
    try:
        return end.recv(1 << 20)
    except OSError:
        return b""


class Joined:
    """Both ends of a connection that goes through a proxy, each of which one thread reads.

    They are closed when neither thread uses them any more. The number of a socket that is closed is soon that of
    another one: a thread that was about to read it, or to shut it, would meet a foreign connection.
    """

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client = client
        self.server = server
        self._readers = 2
        self._lock = threading.Lock()

    @property
    def over(self) -> bool:
        """Whether they are closed."""
        return not self._readers

    def shut(self) -> None:
        """Tell both sides that nothing more will come."""
        with self._lock:
            if self._readers:
                self._shut()

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Within it one of the threads reads. When it ends, nothing more comes on either end."""
        try:
            yield
        finally:
            with self._lock:
                self._shut()
                self._readers -= 1
                if not self._readers:
                    self.client.close()
                    self.server.close()

    def _shut(self) -> None:
        for end in (self.client, self.server):
            shut(end)
