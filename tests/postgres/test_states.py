"""States on a server: whether it answers."""

import asyncio
import socket

from threadmark import States
from threadmark_postgres import PostgresSaver


def test_a_ping_of_a_server_that_is_there(url: str) -> None:
    with PostgresSaver(url) as saver:
        assert States(saver).ping() is True


def test_a_ping_of_a_server_that_is_not_there() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        address = f"postgresql://nobody@127.0.0.1:{nobody.getsockname()[1]}/nothing"
        with PostgresSaver(address) as saver:
            assert States(saver).ping() is False
            assert asyncio.run(States(saver).aping()) is False
