"""Whom the page's server answers, and with which headers."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from page.served import TOKEN, Served, id_of, put, served
from threadmark import MemorySaver

ROUTES = ["about", "threads", "thread", "history", "tree", "checkpoint", "value", "diff", "blame", "search", "live"]
ROUTES += ["items", "item", "namespaces"]


@pytest.fixture
def running() -> Iterator[Served]:
    with MemorySaver() as saver:
        put(saver, "t", {"text": "<script>alert(1)</script>"})
        with served(saver) as running:
            yield running


@pytest.mark.parametrize("path", ["/", "/static/index.html", *(f"/api/{name}?thread=t" for name in ROUTES)])
def test_nothing_is_answered_without_the_cookie(running: Served, path: str) -> None:
    with running.stranger() as stranger:
        assert stranger.get(path).status_code == 401
        stranger.cookies.set(f"threadmark-{running.base.rpartition(':')[2]}", "guessed")
        assert stranger.get(path).status_code == 401
        assert stranger.get("/", params={"token": "guessed"}).status_code == 401
        assert stranger.get("/", params={"token": ""}).status_code == 401


def test_the_token_works_once_and_leaves_a_cookie_that_scripts_cannot_read(running: Served) -> None:
    with running.stranger() as first, running.stranger() as second:
        answer = first.get("/", params={"token": TOKEN})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        name, *attributes = answer.headers["set-cookie"].split("; ")
        assert len(name.partition("=")[2]) >= 40
        assert TOKEN not in name
        assert {each.lower() for each in attributes} == {"httponly", "samesite=strict", "path=/"}
        assert first.get("/").status_code == 200
        assert first.get("/", params={"token": TOKEN}).status_code == 303  # it is in already
        assert second.get("/", params={"token": TOKEN}).status_code == 401
        assert second.get("/api/about").status_code == 401


def test_a_head_request_does_not_use_the_token_up(running: Served) -> None:
    with running.stranger() as stranger:
        assert stranger.head("/", params={"token": TOKEN}).status_code == 405
    with running.client() as client:
        assert client.get("/api/about").status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", ""])
def test_a_name_that_was_made_to_mean_this_machine_is_refused(running: Served, host: str) -> None:
    with running.client() as client:
        answer = client.get("/api/about", headers={"host": host})
        assert answer.status_code == 403
        assert client.get("/", headers={"host": host}).status_code == 403
        assert answer.json()["error"]["kind"] == "refused"


def test_a_forwarded_port_is_as_good_as_the_own_one(running: Served) -> None:
    with running.client() as client:
        del client.headers["origin"]
        secret = client.cookies[f"threadmark-{running.base.rpartition(':')[2]}"]
        for host in ("localhost:9000", "127.0.0.1:9000", "[::1]:9000"):
            headers = {"host": host, "cookie": f"threadmark-9000={secret}", "origin": f"http://{host}"}
            assert client.get("/api/about", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_other_sites_are_refused(running: Served, headers: dict[str, str]) -> None:
    with running.client() as client:
        for path in ("/api/live?thread=t", "/api/threads", "/static/index.html"):
            assert client.get(path, headers=headers).status_code == 403
        assert client.post("/api/fork", json={}, headers=headers).status_code == 403


def test_a_change_needs_an_origin_and_the_option_to_write() -> None:
    with MemorySaver() as saver:
        config = put(saver, "t", {"n": 1})
        body = {"thread": "t", "ns": "", "id": id_of(config)}
        with served(saver) as running, running.client() as client:
            for path in ("/api/fork", "/api/restore"):
                assert client.post(path, json=body).status_code == 403
            assert len(saver.list_checkpoint_refs()) == 1
        with served(saver, write=True) as running, running.client() as client:
            assert client.post("/api/fork", content=json.dumps(body)).status_code == 415
            assert client.post("/api/restore", json=body).status_code == 200
            assert client.post("/api/fork", json=body).status_code == 200
            del client.headers["origin"]
            assert client.post("/api/fork", json=body).status_code == 403
        assert len(saver.list_checkpoint_refs()) == 2  # to restore the newest changes nothing


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("[::1]:{port}", "http://[::1]:{port}", 200),
        ("localhost:{port}", "http://localhost:{port}", 200),
        ("LOCALHOST.:{port}", "http://localhost.:{port}", 200),
        ("127.0.0.1:{port}", "null", 403),
        ("127.0.0.1:{port}", "http://127.0.0.1", 403),
        ("127.0.0.1:{port}", "http://127.0.0.1:1", 403),
        ("127.0.0.1:{port}", "http://localhost:{port}", 403),
        ("127.0.0.1:{port}", "file://", 403),
        ("127.0.0.1:{port}@evil.example", "http://evil.example", 403),
        ("evil.example:127.0.0.1", "http://evil.example", 403),
        ("[::1].evil.example:{port}", "http://[::1].evil.example:{port}", 403),
        ("2130706433.evil.example", "http://2130706433.evil.example", 403),
    ],
)
def test_an_origin_is_the_servers_own_with_its_port(running: Served, host: str, origin: str, status: int) -> None:
    with running.client() as client:
        port = running.base.rpartition(":")[2]
        headers = {"host": host.format(port=port), "origin": origin.format(port=port)}
        assert client.get("/api/about", headers=headers).status_code == status
        headers["sec-fetch-site"] = "same-origin"  # which says nothing for another origin
        assert client.get("/api/about", headers=headers).status_code == status


def test_an_id_is_no_header_and_no_event(running: Served) -> None:
    forged = "t\r\nset-cookie: a=b\r\n\r\nevent: gone"
    with running.client() as client:
        for name in ("thread", "history", "checkpoint", "live"):
            answer = client.get(f"/api/{name}", params={"thread": forged})
            assert "set-cookie" not in answer.headers
            assert answer.text.count("event: gone\n") <= (name == "live")


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE"])
def test_other_methods_are_refused(running: Served, method: str) -> None:
    with running.client() as client:
        assert client.request(method, "/api/threads").status_code == 405
        assert client.request(method, "/").status_code == 405


def test_reading_is_not_posted_and_changing_is_not_got(running: Served) -> None:
    with running.client() as client:
        assert client.post("/api/threads", json={}).status_code == 405
        assert client.get("/api/fork").status_code == 405


def test_every_answer_binds_the_browser(running: Served) -> None:
    with running.client() as client, running.stranger() as stranger:
        answers = [
            client.get("/"),
            client.get("/api/threads"),
            client.get("/api/nothing"),
            client.get("/api/value", params={"thread": "t", "path": "["}),
            client.put("/api/threads"),
            stranger.get("/"),
            stranger.get("/", params={"token": TOKEN}),
            client.get("/api/about", headers={"host": "evil.example"}),
        ]
        for answer in answers:
            policy = answer.headers["content-security-policy"]
            assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
            for part in ("frame-ancestors 'none'", "form-action 'none'", "base-uri 'none'", "connect-src 'self'"):
                assert part in policy
            assert "unsafe" not in policy
            assert "http" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] == "no-referrer"
            assert answer.headers["cache-control"] == "no-store"
            assert "access-control-allow-origin" not in answer.headers
            assert "server" not in answer.headers


def test_a_stored_script_is_sent_as_json(running: Served) -> None:
    with running.client() as client:
        answer = client.get("/api/value", params={"thread": "t", "path": "text"})
        assert answer.headers["content-type"] == "application/json"
        assert answer.json()["v"] == "<script>alert(1)</script>"


def test_files_beside_the_pages_own_are_not_served(running: Served) -> None:
    with running.client() as client:
        for path in ("/static/../api.py", "/static/%2e%2e/api.py", "/static//etc/passwd", "/static/nothing.js"):
            assert client.get(path).status_code == 404


def test_the_pages_files_name_no_other_place() -> None:
    from threadmark_cli import page

    folder = Path(str(page.__file__)).parent / "static"
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    for path in files:
        text = path.read_text().replace("http://www.w3.org/", "")  # the names of SVG and XHTML
        assert "http://" not in text, path
        assert "https://" not in text, path


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[]", 400),
        (b"\xff", 400),
        (b'{"thread": 1}', 400),
        (b'{"thread": "t", "extra": 1}', 400),
        (b'{"thread": NaN}', 400),
        (b"[" * 100_000, 400),
        (b" " * (4 * 1024 * 1024 + 1), 413),
    ],
)
def test_a_body_that_is_no_request_is_refused(body: bytes, status: int) -> None:
    with MemorySaver() as saver, served(saver, write=True) as running, running.client() as client:
        answer = client.post("/api/fork", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == status
        assert answer.json()["error"]["kind"] == "bad_request"


def test_behind_a_proxy_its_own_address_is_known_and_the_cookie_is_for_tls_only() -> None:
    with (
        MemorySaver() as saver,
        served(saver, hosts=["agents.example.com"], origins=["https://agents.example.com"]) as running,
        running.stranger() as client,
    ):
        client.headers["host"] = "agents.example.com"
        answer = client.get("/", params={"token": TOKEN})
        assert "secure" in answer.headers["set-cookie"].lower()
        cookie = answer.headers["set-cookie"].partition(";")[0]
        headers = {"origin": "https://agents.example.com", "cookie": cookie}
        assert client.get("/api/about", headers=headers).status_code == 200
        assert client.get("/api/about", headers={**headers, "origin": "https://evil.example"}).status_code == 403
