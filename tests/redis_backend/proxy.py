"""A socket between a client and its Redis server that counts round trips, holds replies back, or loses them."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from ends import Joined, Listener, received, send
from redis_backend.processes import HOST

_SETTING_UP = {"HELLO", "AUTH", "CLIENT", "SELECT", "INFO", "CONFIG", "COMMAND", "CLUSTER", "READONLY", "PING"}
"""The commands about the connection and the server."""


class Proxy:
    """Forwards connections to a port.

    A round trip begins when a client sends after the server has spoken, unless it only sets up the connection.
    """

    def __init__(self, port: int) -> None:
        self._server = (HOST, port)
        self._connections: list[_Connection] = []
        self._flowing = threading.Event()
        self._flowing.set()
        self._lost: str | None = None
        self._spared = 0
        self.round_trips = 0
        self.connections = 0
        self.commands: list[str] = []
        """The name of each command that clients sent, in their order."""
        self.requested = threading.Semaphore(0)
        """Released once for each command, so that a test can wait for one."""
        self._listener = Listener(self._accepted)
        self.port: int = self._listener.port

    @property
    def url(self) -> str:
        """Its URL."""
        return f"redis://{HOST}:{self.port}"

    def cut(self) -> None:
        """Close every connection as a firewall does, saying nothing to the clients before."""
        connections, self._connections = self._connections, []
        for each in connections:
            each.shut()

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Within it the server's replies wait here; requests go through."""
        self._flowing.clear()
        try:
            yield
        finally:
            self._flowing.set()

    def lose_reply(self, command: str, *, after: int = 0) -> None:
        """Close the connection on which the next such command comes when the server has answered it.

        `after` is how many are answered before.
        """
        self._lost, self._spared = command, after

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        self._flowing.set()
        self.cut()

    def _accepted(self, client: socket.socket) -> None:
        self.connections += 1
        try:
            server = socket.create_connection(self._server)
        except OSError:
            client.close()
            return
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = _Connection(client, server)
        self._connections.append(connection)
        threading.Thread(target=self._requests, args=(connection,), daemon=True).start()
        threading.Thread(target=self._replies, args=(connection,), daemon=True).start()

    def _requests(self, connection: "_Connection") -> None:
        requests = _Requests()
        with connection.reading():
            while data := received(connection.client):
                for command in requests.names(data):
                    if command not in _SETTING_UP and connection.has_spoken:
                        connection.has_spoken = False
                        self.round_trips += 1
                    if command == self._lost:
                        if self._spared:
                            self._spared -= 1
                        else:
                            self._lost, connection.loses_reply = None, True
                    self.commands.append(command)
                    self.requested.release()
                send(connection.server, data)

    def _replies(self, connection: "_Connection") -> None:
        with connection.reading():
            while data := received(connection.server):
                if connection.loses_reply:
                    break
                self._flowing.wait()
                connection.has_spoken = True
                send(connection.client, data)


class _Connection(Joined):
    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        super().__init__(client, server)
        self.has_spoken = True
        """Whether the server has sent anything since the client's last request."""
        self.loses_reply = False


class _Requests:
    """The requests on one connection, which come in pieces: arrays of byte strings with their lengths."""

    def __init__(self) -> None:
        self._waiting = b""

    def names(self, data: bytes) -> Iterator[str]:
        """The names of the commands that are complete with this piece."""
        self._waiting += data
        while self._waiting and (end := self._end()) is not None:
            name = self._waiting.split(b"\r\n", 3)[2]
            self._waiting = self._waiting[end:]
            yield name.decode().upper()

    def _end(self) -> int | None:
        """The end of the first request; None as long as it is not all there."""
        line = self._waiting.find(b"\r\n")
        if line < 0:
            return None
        at = line + 2
        for _ in range(int(self._waiting[1:line])):
            line = self._waiting.find(b"\r\n", at)
            if line < 0:
                return None
            at = line + 2 + int(self._waiting[at + 1 : line]) + 2
        return at if at <= len(self._waiting) else None
