"""The example of an agent's server, asked over HTTP: a real server on a free port, and a separate Postgres."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from patience import PATIENCE
from postgres.cluster import shared

EXAMPLE = Path(__file__).parents[1] / "examples" / "agent_server.py"


def _create_app(url: str) -> Any:
    scope: dict[str, Any] = {"__name__": "agent_server"}
    exec(compile(EXAMPLE.read_text(encoding="utf-8"), str(EXAMPLE), "exec"), scope)  # noqa: S102 - it is tested
    return scope["create_app"](url)


class _Server(uvicorn.Server):
    """Says when it answers, and leaves the signals of this process alone."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.answers = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.answers.set()

    def install_signal_handlers(self) -> None:
        """Install none."""


@contextmanager
def _served(url: str) -> Iterator[str]:
    """The address of a running server."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = _Server(uvicorn.Config(_create_app(url), log_level="warning", ws="none"))
        thread = threading.Thread(target=asyncio.run, args=(server.serve([listening]),))
        thread.start()
        try:
            assert server.answers.wait(PATIENCE)
            assert server.started
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    cluster = shared()
    with _served(cluster.database("agent_server")) as address:
        yield address
    cluster.execute("DROP DATABASE agent_server WITH (FORCE)")


def _client(address: str, user: str) -> httpx.Client:
    return httpx.Client(base_url=address, headers={"x-user": user}, trust_env=False, timeout=PATIENCE)


def test_a_conversation_is_written_read_in_pages_and_searched(address: str) -> None:
    with _client(address, "ada") as ada:
        for number in range(25):
            said = [{"id": f"m{number}", "role": "user", "content": f"Message {number}"}]
            assert ada.post("/threads/pages/messages", json=said).json() == [f"m{number}"]
        newest = ada.get("/threads/pages/messages", params={"limit": 10}).json()
        assert [message["id"] for message in newest] == [f"m{number}" for number in range(15, 25)]
        older = ada.get("/threads/pages/messages", params={"limit": 10, "before": "m15"}).json()
        assert [message["id"] for message in older] == [f"m{number}" for number in range(5, 15)]
        found = ada.get("/threads/pages/messages", params={"search": "mESSAGE 2"}).json()
        assert [message["id"] for message in found] == ["m2", *(f"m{number}" for number in range(20, 25))]
        (made,) = ada.post("/threads/pages/messages", json=[{"content": "no id"}]).json()
        last = ada.get("/threads/pages/messages", params={"limit": 1}).json()
        assert last == [{"id": made, "content": "no id"}]


def test_a_message_is_deleted_and_a_thread_with_everything(address: str) -> None:
    with _client(address, "ada") as ada:
        ada.post("/threads/gone/messages", json=[{"id": "a", "content": "x"}, {"id": "b", "content": "y"}])
        assert ada.delete("/threads/gone/messages/a").status_code == 204
        assert ada.delete("/threads/gone/messages/a").status_code == 404
        assert ada.get("/threads/gone/messages", params={"before": "a"}).status_code == 422
        assert [message["id"] for message in ada.get("/threads/gone/messages").json()] == ["b"]
        assert ada.delete("/threads/gone").status_code == 204
        assert ada.delete("/threads/gone").status_code == 404
        assert ada.get("/threads/gone/messages").json() == []


def test_a_state_is_stored_and_replaced(address: str) -> None:
    with _client(address, "ada") as ada:
        assert ada.get("/threads/state/state").status_code == 404
        for state in ({"mood": "fine", "step": 1}, {"mood": "fine", "step": 2}):
            assert ada.put("/threads/state/state", json=state).status_code == 204
            assert ada.get("/threads/state/state").json() == state


@pytest.mark.parametrize("content", ['"\\ud83d"', "[" * 500 + "]" * 500])
def test_what_could_not_be_sent_back_is_not_stored(address: str, content: str) -> None:
    with _client(address, "ada") as ada:
        ada.headers["content-type"] = "application/json"
        message = f'{{"id": "a", "content": {content}}}'
        assert ada.post("/threads/odd/messages", content=f"[{message}]").status_code == 422
        assert ada.put("/threads/odd/state", content=message).status_code == 422
        assert ada.get("/threads/odd/messages").json() == []
        assert ada.get("/threads/odd/state").status_code == 404


def test_threads_are_listed_for_their_user_alone(address: str) -> None:
    with _client(address, "lin") as lin, _client(address, "eve") as eve, _client(address, "") as nobody:
        names = ["lins-one", *(f"lins-{number}" for number in range(24))]
        for name in names:
            lin.post(f"/threads/{name}/messages", json=[{"content": "x"}])
        first = lin.get("/threads").json()
        rest = lin.get("/threads", params={"cursor": first["cursor"]}).json()
        assert len(first["threads"]) == 20
        assert [thread["id"] for thread in first["threads"] + rest["threads"]] == names[::-1]
        assert eve.get("/threads").json() == {"threads": [], "cursor": None}
        assert eve.get("/threads/lins-one/messages").json() == []
        assert eve.post("/threads/lins-one/messages", json=[{"content": "planted"}]).status_code == 404
        assert eve.delete("/threads/lins-one").status_code == 404
        assert nobody.get("/threads").status_code == 422
        assert len(lin.get("/threads/lins-one/messages").json()) == 1


def test_many_who_write_at_once_lose_nothing(address: str) -> None:
    async def main() -> list[str]:
        headers = {"x-user": "ada"}
        async with httpx.AsyncClient(base_url=address, headers=headers, trust_env=False, timeout=PATIENCE) as ada:
            answers = await asyncio.gather(
                *(ada.post("/threads/many/messages", json=[{"id": f"m{number}"}]) for number in range(40))
            )
            assert {answer.status_code for answer in answers} == {201}
            found = (await ada.get("/threads/many/messages")).json()
            return [message["id"] for message in found]

    assert sorted(asyncio.run(main())) == sorted(f"m{number}" for number in range(40))
