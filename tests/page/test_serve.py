"""`threadmark serve` as a process: the address that it prints, its end, and its refusals."""

import asyncio
import json
import logging
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import uvicorn

from page.served import id_of, put
from ports import free_port
from threadmark_cli.page.connections import OnceAMinute, PageConnection, Waiting
from threadmark_sqlite import SqliteSaver

HALVES = (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-", b"POST / HTTP/1.1\r\n", b"", b"\0\r\n\r\n")
COMMAND = [sys.executable, "-m", "threadmark_cli", "serve", "--no-open"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "t.db"
    with SqliteSaver(path, durability="normal") as saver:
        put(saver, "t", {"n": 1})
    return path


@contextmanager
def _running(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server, and the address that it prints."""
    process = subprocess.Popen(
        [*COMMAND, "--json", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())["url"]
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("ends_with", [signal.SIGINT, signal.SIGTERM])
def test_the_address_opens_the_page_and_a_signal_ends_it_without_an_error(file: Path, ends_with: int) -> None:
    before = file.read_bytes()
    with _running(str(file)) as (process, url):
        base, _, token = url.partition("/?token=")
        assert base.startswith("http://127.0.0.1:")
        assert len(token) >= 32
        with httpx.Client(base_url=base, trust_env=False, timeout=60, follow_redirects=True) as client:
            assert "<!doctype html>" in client.get(url).text.lower()
            assert [each["id"] for each in client.get("/api/threads").json()["threads"]] == ["t"]
            assert client.get("/api/about").json()["write"] is False
            with client.stream("GET", "/api/live", params={"thread": "t"}) as live:
                lines = live.iter_lines()
                assert next(lines).startswith(":")
                process.send_signal(ends_with)
                assert [*lines][-1:] in ([], [""])
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")
    assert file.read_bytes() == before


def test_with_write_it_restores(file: Path) -> None:
    with SqliteSaver(file) as saver:
        config = put(saver, "t", {"n": 2}, {"configurable": {"thread_id": "t", "checkpoint_ns": ""}})
        first = put(saver, "t", {"n": 3}, config)
        put(saver, "t", {"n": 4}, first)
    with _running("--write", str(file)) as (_, url):
        base = url.partition("/?")[0]
        with httpx.Client(base_url=base, trust_env=False, timeout=60, headers={"origin": base}) as client:
            client.get(url)
            body = {"thread": "t", "ns": "", "id": id_of(first)}
            restored = client.post("/api/restore", json=body).json()["config"]
    with SqliteSaver(file) as saver:
        found = saver.get({"configurable": {"thread_id": "t"}})
        assert found is not None
        assert (found["id"], found["channel_values"]) == (id_of(restored), {"n": 3})


def _refused(*arguments: str) -> tuple[int, str]:
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


def test_what_cannot_be_served_is_said(file: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, errors = _refused("--port", str(taken.getsockname()[1]), str(file))
    assert (code, "choose another --port" in errors) == (2, True)
    for url in ("https://a.example/threads", "https://[a"):
        code, errors = _refused("--public-url", url, str(file))
        assert (code, "is not the address of a server" in errors) == (2, True)
    assert _refused(str(file.with_name("none.db")))[0] == 5


def test_a_public_address_is_as_browsers_write_it(file: Path) -> None:
    port = str(free_port())
    with _running("--public-url", "https://Bücher.example:443/", "--port", port, str(file)) as (_, url):
        assert url.startswith("https://xn--bcher-kva.example/?token=")
        headers = {"host": "xn--bcher-kva.example"}  # as a proxy passes it on
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60, headers=headers) as client:
            assert client.get(f"/?{urlsplit(url).query}").status_code == 303


def test_another_host_is_warned_of(file: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "--host", "0.0.0.0", str(file)],  # noqa: S104 - the test expects a warning of this
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert "The page is at http://0.0.0.0:" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert "not encrypted" in errors


def test_half_requests_keep_nobody_out(file: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (400, hard))  # for the server
        process, url = stack.enter_context(_running(str(file)))
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
        address = (urlsplit(url).hostname or "", urlsplit(url).port or 0)
        for number in range(1100):
            half = stack.enter_context(socket.create_connection(address, timeout=60))
            half.sendall(HALVES[number % len(HALVES)])
        with httpx.Client(trust_env=False, timeout=60, follow_redirects=True) as client:
            assert "<!doctype html>" in client.get(url).text.lower()
            assert [each["id"] for each in client.get(f"{url.partition('?')[0]}api/threads").json()["threads"]] == ["t"]
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0
        assert "Traceback" not in errors
        assert len(errors) < 1000


def test_a_request_has_to_arrive_in_time() -> None:
    async def answered(_: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def serve() -> list[bytes]:
        waiting = Waiting(most=100, seconds=0.05)
        connection: Any = partial(PageConnection, waiting=waiting)
        config = uvicorn.Config(answered, http=connection, ws="none", lifespan="off", log_config=None)
        server = uvicorn.Server(config)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            task = asyncio.create_task(server.serve([listening]))
            answers = []
            head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
            for text in (b"", head, head + b"\r\na", head + b"\r\naa"):
                reader, writer = await asyncio.open_connection(*listening.getsockname())
                writer.write(text)
                with suppress(ConnectionResetError):
                    answers.append((await reader.read())[:12])
                writer.close()
            server.should_exit = True
            await task
        return answers

    answers = asyncio.run(serve())
    assert [each for each in answers if each] == [b"HTTP/1.1 204"]


def test_a_message_passes_once_a_minute() -> None:
    times = iter([0, 1, 59, 60, 61, 62])
    once = OnceAMinute(lambda: next(times))
    record = logging.makeLogRecord({"name": "a", "msg": "one"})
    assert [once.filter(record) for _ in range(5)] == [True, False, False, True, False]
    assert once.filter(logging.makeLogRecord({"name": "a", "msg": "another"}))
