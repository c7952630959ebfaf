"""A proxy between a saver and its server that ends a connection in the middle of an answer, after any of its bytes."""

import socket
import threading
from typing import NamedTuple, Self

from ends import Joined, Listener, received, send


class Loss(NamedTuple):
    """Which answer is lost, counted from 0, and how many of its bytes reach the client."""

    answer: int
    spared: int


class Cutter:
    """Forwards connections to a port, and counts the server's answers: all that it sends until it is asked again."""

    def __init__(self, port: int) -> None:
        self._server = ("127.0.0.1", port)
        self._joined: list[Joined] = []
        self._lock = threading.Lock()
        self._loss: Loss | None = None
        self._has_lost = False
        self._answers: list[int] = []
        self._listener = Listener(self._accepted)
        self.port: int = self._listener.port

    def arm(self, loss: Loss | None) -> None:
        """Begin to count. Lose the rest of an answer, with its connection, or nothing.

        So the server has done all of which it tells in that answer.
        """
        with self._lock:
            self._answers, self._loss, self._has_lost = [], loss, False

    def disarm(self) -> tuple[list[int], bool]:
        """Lose nothing from now on. Returns the length of each answer, and whether one was lost."""
        with self._lock:
            self._loss = None
            return [*self._answers], self._has_lost

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        for each in self._joined:
            each.shut()

    def _accepted(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(self._server)
        except OSError:  # the server is down
            client.close()
            return
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        joined = Joined(client, server)
        self._joined.append(joined)
        asked = threading.Event()
        threading.Thread(target=self._requests, args=(joined, asked), daemon=True).start()
        threading.Thread(target=self._answered, args=(joined, asked), daemon=True).start()

    def _requests(self, joined: Joined, asked: threading.Event) -> None:
        with joined.reading():
            while data := received(joined.client):
                asked.set()
                send(joined.server, data)

    def _answered(self, joined: Joined, asked: threading.Event) -> None:
        with joined.reading():
            while data := received(joined.server):
                passing = self._passing(data, asked)
                send(joined.client, passing)
                if len(passing) < len(data):
                    return

    def _passing(self, data: bytes, asked: threading.Event) -> bytes:
        """The part of the received bytes that reaches the client: all, but for one answer."""
        with self._lock:
            if asked.is_set() or not self._answers:
                asked.clear()
                self._answers.append(0)
            before, number = self._answers[-1], len(self._answers) - 1
            self._answers[-1] += len(data)
            if self._loss is None or self._loss.answer != number or self._loss.spared >= before + len(data):
                return data
            spared, self._loss, self._has_lost = self._loss.spared - before, None, True
            return data[:spared]
