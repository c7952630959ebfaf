"""A socket between a client and a server, which can be closed, silent, or lose answers, and opens again."""

import socket
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from ends import Joined, Listener, received, send
from replication.links import Way


class Gate:
    """Forwards connections to a port, as far as the way is open.

    "closed": connections are closed, and new ones at once. "silent": they stay, new ones are taken, and nothing goes
    through. "deaf": requests go through, and their answers do not.
    """

    def __init__(self, port: int) -> None:
        self._server = ("127.0.0.1", port)
        self._connections: list[_Connection] = []
        self._way: Way = "open"
        self._lock = threading.Lock()
        self._listener = Listener(self._accepted)
        self.port: int = self._listener.port

    def set(self, way: Way) -> None:
        """Change the way. Connections of which something was lost are closed when it opens."""
        with self._lock:
            self._way = way
            for connection in self._connections:
                if way == "closed" or (way == "open" and connection.lost):
                    connection.shut()
            self._connections = [each for each in self._connections if not each.over]

    def close(self) -> None:
        """End it."""
        self._listener.close()
        self.set("closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accepted(self, client: socket.socket) -> None:
        threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        if self._is("closed"):
            client.close()
            return
        try:
            server = socket.create_connection(self._server, timeout=60)
        except OSError:  # it was killed
            client.close()
            return
        server.settimeout(None)
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = _Connection(client, server)
        with self._lock:
            if self._is("closed"):
                connection.shut()
            self._connections.append(connection)
        threading.Thread(target=self._forward, args=(connection, client, server, ("silent",)), daemon=True).start()
        self._forward(connection, server, client, ("silent", "deaf"))

    def _is(self, *ways: Way) -> bool:
        return self._way in ways

    def _forward(
        self, connection: "_Connection", source: socket.socket, target: socket.socket, lost: tuple[Way, ...]
    ) -> None:
        with connection.reading():
            while data := received(source):
                if connection.lost or self._is(*lost):
                    connection.lost = True
                    if self._is("open"):  # it opened while this came
                        break
                else:
                    send(target, data)


class _Connection(Joined):
    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        super().__init__(client, server)
        self.lost = False
        """Whether something was lost, so that later bytes mean nothing."""


class Ways:
    """For each client the way to one side: a gate before a server, a note for a file."""

    def __init__(self, closing: ExitStack, port: int, folder: Path, clients: int) -> None:
        self.gates = [closing.enter_context(Gate(port)) for _ in range(clients)] if port else []
        self.notes = [] if port else [folder / f"way{id(self)}.{number}" for number in range(clients)]

    def set(self, client: int, way: Way) -> None:
        """Change the way for one client."""
        if self.gates:
            self.gates[client].set(way)
        else:
            new = self.notes[client].with_suffix(".new")
            new.write_text(way)
            new.replace(self.notes[client])

    def port(self, client: int) -> int:
        """The port on which a client finds the server."""
        return self.gates[client].port if self.gates else 0

    def note(self, client: int) -> str:
        """The file that says how a client reaches a database in a file, "" for a server."""
        return str(self.notes[client]) if self.notes else ""
