"""LangGraph's server loads the checkpointer of docs/how-to/langgraph-json.md, and keeps its runs in our database."""

import re
import site
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

import threadmark
from patience import PATIENCE, wait_until
from ports import free_port

FOLDER = Path(__file__).parent
PAGE = FOLDER.parents[1] / "docs" / "how-to" / "langgraph-json.md"

AGENT = """
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph

builder = StateGraph(MessagesState)
builder.add_node("answer", lambda state: {"messages": [AIMessage(f"answer {len(state['messages'])}")]})
builder.add_edge(START, "answer")
graph = builder.compile()
"""

SERVER = """
import json, sys
from pathlib import Path
from langgraph_api.cli import run_server

settings = json.loads(Path("langgraph.json").read_text())
graphs, checkpointer = settings["graphs"], settings["checkpointer"]
run_server("127.0.0.1", int(sys.argv[1]), graphs=graphs, checkpointer=checkpointer, disable_persistence=True)
"""


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """A Python that has LangGraph's server, and finds the packages of this one."""
    folder = tmp_path / "environment"
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    (packages,) = folder.glob("lib/python*/site-packages")
    lines = [f"import site; site.addsitedir({each!r})" for each in site.getsitepackages()]
    (packages / "these.pth").write_text("\n".join(lines))
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "-r", str(FOLDER / "requirements.txt")], check=True)
    return python


@pytest.fixture
def server(python: Path, tmp_path: Path) -> Iterator[httpx.Client]:
    """A client of the server, which runs in a folder with the files of the page."""
    page = PAGE.read_text(encoding="utf-8")
    for name, language in (("langgraph.json", "json"), ("checkpointer.py", "python")):
        (block,) = re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
        (tmp_path / name).write_text(block)
    (tmp_path / "agent.py").write_text(AGENT)
    port = free_port()
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen([python, "-c", SERVER, str(port)], cwd=tmp_path, stdout=log, stderr=log) as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE, trust_env=False) as client,
    ):

        def answers() -> bool:
            assert process.poll() is None, (tmp_path / "log").read_text()
            with suppress(httpx.TransportError):
                return client.get("/ok").is_success
            return False

        try:
            wait_until(answers, "the server does not answer")
            yield client
        finally:
            process.terminate()


@pytest.mark.skipif(sys.platform == "win32", reason="the environment's folders have other names there")
def test_runs_of_the_server_are_kept_and_deleted(server: httpx.Client, tmp_path: Path) -> None:
    thread = server.post("/threads", json={}).json()["thread_id"]
    run = {"assistant_id": "agent", "input": {"messages": [{"role": "user", "content": "Hello"}]}}
    for _ in range(2):
        result = server.post(f"/threads/{thread}/runs/wait", json=run).json()
    contents = ["Hello", "answer 1", "Hello", "answer 3"]
    assert [message["content"] for message in result["messages"]] == contents
    assert len(server.post(f"/threads/{thread}/history", json={"limit": 10}).json()) == 6
    log = (tmp_path / "log").read_text()
    with threadmark.open(f"sqlite:///{tmp_path / 'agents.db'}") as saver:
        assert saver.extract(thread, "messages[-1].content") == "answer 3"
        assert "degrade functionality" not in log.partition("Using custom checkpointer")[2]
        assert server.delete(f"/threads/{thread}").status_code == 204
        wait_until(lambda: saver.get_thread(thread) is None, "the thread is still there")
