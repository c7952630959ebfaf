"""A socket between a saver and its server that counts the round trips made through it."""

import socket
import threading
from typing import Self

from ends import Joined, Listener, received, send

_TO_CONNECT = 2.0


class Proxy:
    """Forwards connections to a port. A round trip begins when a client sends after the server has spoken."""

    def __init__(self, port: int) -> None:
        self._server = ("127.0.0.1", port)
        self._joined: list[Joined] = []
        self._silent = False
        self._unanswered: list[socket.socket] = []
        self.round_trips = 0
        self.bytes_answered = 0
        self.connections = 0
        self._listener = Listener(self._accepted)
        self.port: int = self._listener.port

    def cut(self) -> None:
        """Close every connection as a firewall does, saying nothing to the clients before."""
        joined, self._joined = self._joined, []
        for each in joined:
            each.shut()

    def fall_silent(self) -> None:
        """Close every connection, and take new ones without ever saying anything, as a server that hangs does."""
        self._silent = True
        self.cut()

    def speak_again(self) -> None:
        """Forward connections again, after `fall_silent`."""
        self._silent = False
        self._close_unanswered()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        self.cut()
        self._close_unanswered()

    def _close_unanswered(self) -> None:
        unanswered, self._unanswered = self._unanswered, []
        for end in unanswered:
            end.close()

    def _accepted(self, client: socket.socket) -> None:
        self.connections += 1
        if self._silent:
            self._unanswered.append(client)
            return
        try:
            server = socket.create_connection(self._server, _TO_CONNECT)
        except OSError:  # the server is down, or stands still
            client.close()
            return
        server.settimeout(None)
        joined = Joined(client, server)
        self._joined.append(joined)
        spoken = threading.Event()
        spoken.set()
        threading.Thread(target=self._requests, args=(joined, spoken), daemon=True).start()
        threading.Thread(target=self._answers, args=(joined, spoken), daemon=True).start()

    def _requests(self, joined: Joined, spoken: threading.Event) -> None:
        with joined.reading():
            while data := received(joined.client):
                if spoken.is_set():
                    spoken.clear()
                    self.round_trips += 1
                send(joined.server, data)

    def _answers(self, joined: Joined, spoken: threading.Event) -> None:
        with joined.reading():
            while data := received(joined.server):
                spoken.set()
                self.bytes_answered += len(data)
                send(joined.client, data)
