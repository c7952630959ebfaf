"""The application of docs/how-to/fastapi.md answers, keeps users apart, and finds its threads after a restart."""

import re
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

PAGE = Path(__file__).parent.parent / "docs" / "how-to" / "fastapi.md"
ADA, EVE = {"x-user": "ada"}, {"x-user": "eve"}


def _application() -> Any:
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {"__name__": "app"}
    exec(code, names)  # noqa: S102 - running the page is the test
    return names["app"]


def test_the_application_keeps_users_apart_and_survives_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with TestClient(_application()) as client:
        asked = client.post("/threads/1/messages", headers=ADA, json={"text": "Hello"})
        assert (asked.status_code, asked.json()) == (200, "You said: Hello")
        assert client.post("/threads/1/messages", headers=EVE, json={"text": "Hello"}).status_code == 404
        assert client.get("/threads/1/messages", headers=EVE).status_code == 404
        assert client.get("/threads", headers=EVE).json() == {"threads": [], "cursor": None}
    with TestClient(_application()) as client:
        assert client.get("/threads/1/messages", headers=ADA).json() == ["Hello", "You said: Hello"]
        assert [each["id"] for each in client.get("/threads", headers=ADA).json()["threads"]] == ["1"]
