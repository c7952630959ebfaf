"""The serializer is the user's to choose; clones that may load more classes share everything else."""

import copy
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.serde.base import CipherProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Command, Interrupt, Overwrite, Send

from langgraph_parity.states import Position
from threadmark import ForbiddenTypeError, MemorySaver, Serde
from threadmark_langgraph import Checkpointer, SqliteSaver, wrap

THREAD: Any = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}


class Reversing(CipherProtocol):
    """No secret, but nothing that reads as plain text."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        return "reversed", plaintext[::-1]

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        assert ciphername == "reversed"
        return ciphertext[::-1]


class Untyped:
    """A serializer of the oldest kind, without tags."""

    def dumps(self, obj: Any) -> bytes:
        return repr(obj).encode()

    def loads(self, data: bytes) -> Any:
        import ast

        return ast.literal_eval(data.decode())


def put_value(saver: BaseCheckpointSaver[Any], value: Any) -> Any:
    """The value of a channel that comes back."""
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"x": value}
    checkpoint["channel_versions"] = {"x": saver.get_next_version(None, None)}
    stored = saver.put(THREAD, checkpoint, {}, checkpoint["channel_versions"])
    found = saver.get_tuple(stored)
    assert found is not None
    return found.checkpoint["channel_values"]["x"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A database that is looked into afterwards."""
    return tmp_path / "checkpoints.db"


def test_langgraphs_own_types_need_no_permission() -> None:
    packets = [
        Send("node", {"a": 1}),
        Send("slow", [], timeout=3),
        Interrupt("sure?", id="i"),
        Overwrite([1]),
    ]
    value = [*packets, Command(update={"a": 1}, goto="b"), HumanMessage("hi", id="h")]
    with wrap(MemorySaver(serde=Serde(allow=[]))) as saver:
        assert put_value(saver, value) == value


@pytest.mark.parametrize("inner", [JsonPlusSerializer(), Serde()], ids=["jsonplus", "threadmark"])
def test_encrypted_values_are_nowhere_in_the_file(file: Path, inner: Any) -> None:
    secret = "the secret of the lighthouse"  # noqa: S105 - it must not be found
    with SqliteSaver(file, serde=EncryptedSerializer(Reversing(), inner)) as saver:
        assert put_value(saver, [secret] * 3) == [secret] * 3
        saver.put_writes(saver.get_tuple(THREAD).config, [("x", secret)], "task")  # type: ignore[union-attr]  # it is there
    stored = b"".join(each.read_bytes() for each in file.parent.iterdir())
    assert secret.encode() not in stored
    assert secret[::-1].encode() in stored


def test_serializer_without_tags_is_given_some() -> None:
    with wrap(MemorySaver()) as saver:
        saver.serde = Untyped()  # type: ignore[assignment]  # LangGraph accepts it too
        assert put_value(saver, {"a": (1, 2)}) == {"a": (1, 2)}


def test_clone_with_an_allowlist_shares_the_database_and_only_loads_more() -> None:
    entry = (Position.__module__, Position.__name__)
    with wrap(MemorySaver(serde=Serde(allow=[]))) as strict:
        clone = strict.with_allowlist({entry})
        assert isinstance(clone, Checkpointer)
        assert put_value(clone, Position(1, 2)) == Position(1, 2)
        with pytest.raises(ForbiddenTypeError, match="Position"):
            strict.get_tuple(THREAD)
        assert clone.with_allowlist({entry}) is clone


def test_clone_of_an_encrypted_saver_stays_encrypted() -> None:
    with wrap(MemorySaver()) as saver:
        saver.serde = EncryptedSerializer(Reversing(), Serde(allow=[]))
        clone = saver.with_allowlist({(Position.__module__, Position.__name__)})
        assert isinstance(clone.serde, EncryptedSerializer)
        assert put_value(clone, Position(1, 2)) == Position(1, 2)


def test_langgraphs_serializer_is_extended_as_langgraph_does() -> None:
    with wrap(MemorySaver()) as saver:
        saver.serde = JsonPlusSerializer(allowed_msgpack_modules=[])
        clone = saver.with_allowlist({(HumanMessage.__module__, HumanMessage.__name__)})
        assert clone is not saver
        assert clone.serde is not saver.serde
        put_value(saver, 1)
        assert clone.get_tuple(THREAD) is not None


def test_unlimited_serializer_needs_no_clone() -> None:
    with wrap(MemorySaver()) as saver:
        assert saver.with_allowlist({("some.module", "Thing")}) is saver


def test_shallow_copies_are_independent_only_in_their_serializer() -> None:
    with wrap(MemorySaver()) as saver:
        clone = copy.copy(saver)
        clone.serde = JsonPlusSerializer()
        assert isinstance(saver.serde, Serde)
        put_value(saver, 1)
        assert next(iter(saver.list(THREAD))).checkpoint["channel_values"] == {"x": 1}


def test_process_that_only_reads_needs_no_imports_of_its_own(file: Path) -> None:
    with SqliteSaver(file) as saver:
        put_value(saver, [HumanMessage("hi", id="h"), Send("node", 1)])
    script = (
        "import sys; from threadmark_langgraph import SqliteSaver\n"
        "with SqliteSaver(sys.argv[1]) as saver:\n"
        "    print(saver.get({'configurable': {'thread_id': '1'}})['channel_values']['x'])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", script, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert "HumanMessage(content='hi'" in done.stdout, done.stderr
    assert "Send(node='node', arg=1)" in done.stdout
