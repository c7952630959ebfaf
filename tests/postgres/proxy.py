"""A socket between a saver and its server that counts the round trips made through it."""

import socket
import threading
from typing import Self

from ends import listen, received, send, shut


class Proxy:
    """Forwards connections to a port. A round trip is what a client sends after the server has spoken."""

    def __init__(self, port: int) -> None:
        self._server = ("127.0.0.1", port)
        self._ends: list[socket.socket] = []
        self._silent = False
        self._unanswered: list[socket.socket] = []
        self.round_trips = 0
        self.bytes_answered = 0
        self.connections = 0
        self._listener = listen(self._accepted)
        self.port: int = self._listener.getsockname()[1]

    def cut(self) -> None:
        """Close every connection as a firewall does, saying nothing to the clients before."""
        for end in self._ends:
            shut(end)
        self._ends.clear()

    def fall_silent(self) -> None:
        """Close every connection, and take new ones without ever saying anything, as a server that hangs does."""
        self._silent = True
        self.cut()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        self.cut()
        for end in self._unanswered:
            end.close()

    def _accepted(self, client: socket.socket) -> None:
        self.connections += 1
        if self._silent:
            self._unanswered.append(client)
            return
        server = socket.create_connection(self._server)
        self._ends += [client, server]
        spoken = threading.Event()
        spoken.set()
        threading.Thread(target=self._requests, args=(client, server, spoken), daemon=True).start()
        threading.Thread(target=self._answers, args=(server, client, spoken), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket, spoken: threading.Event) -> None:
        with client, server:
            while data := received(client):
                if spoken.is_set():
                    spoken.clear()
                    self.round_trips += 1
                send(server, data)

    def _answers(self, server: socket.socket, client: socket.socket, spoken: threading.Event) -> None:
        with client, server:
            while data := received(server):
                spoken.set()
                self.bytes_answered += len(data)
                send(client, data)
            shut(client)  # to close it would do nothing, as long as the other thread waits for it
