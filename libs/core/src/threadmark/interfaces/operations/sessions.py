"""The operations of `Sessions`."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from threadmark.errors import ConfigError
from threadmark.ids import new_id, time_of_id
from threadmark.interfaces.operations.states import SESSION, config_of, counts, save_draft, state_draft, state_of
from threadmark.interfaces.shapes import SessionCheckpoint, SessionMetadata, SessionStats
from threadmark.model import CheckpointTuple
from threadmark.names import as_text
from threadmark.program import Operation
from threadmark.saver.kit import Reader, SaverContext, checked_count, get_tuple, listing, time_of


def save(context: SaverContext, checkpoint: SessionCheckpoint, lease_token: int | None) -> Operation[SessionCheckpoint]:
    """Store a checkpoint as the newest of its session. Returns it with its generated fields."""
    if not isinstance(checkpoint, SessionCheckpoint):
        raise ConfigError(f"save takes a threadmark.types.SessionCheckpoint, not a {type(checkpoint).__name__}")
    about = checkpoint.metadata
    made_id = new_id() if about.checkpoint_id is None else as_text(about.checkpoint_id, "checkpoint_id")
    about = replace(about, checkpoint_id=made_id, timestamp=about.timestamp or datetime.now(UTC))
    draft = state_draft(context.serde, made_id, checkpoint.state)
    config = config_of(about.session_id, lease_token=lease_token)
    is_known = checkpoint.metadata.checkpoint_id is not None
    yield from save_draft(context, config, draft, _stored_metadata(about), SESSION, replaces=is_known)
    return SessionCheckpoint(about, checkpoint.state)


def load(context: SaverContext, session_id: str, checkpoint_id: str | None) -> Operation[SessionCheckpoint | None]:
    """Return a checkpoint of a session, the newest for None. Returns None if there is none."""
    found = yield from get_tuple(context, config_of(session_id, checkpoint_id))
    return _session_checkpoint(found) if found else None


def list_checkpoints(context: SaverContext, session_id: str, limit: int) -> Operation[list[SessionCheckpoint]]:
    """Return the newest checkpoints of a session, newest first."""
    reader = Reader(context, listing(config_of(session_id), None, None, checked_count(limit, "limit")))
    found: list[SessionCheckpoint] = []
    while reader.more:
        batch = yield from reader.next_batch()
        found += [_session_checkpoint(item) for item in reader.readable(batch)]
    reader.finish()
    return found


def stats(context: SaverContext) -> Operation[SessionStats]:
    """Count all sessions."""
    found = yield from counts(context, SESSION)
    sessions, checkpoints = len(found), sum(each.checkpoints for each in found)
    mean = checkpoints / sessions if sessions else 0.0
    return SessionStats(sessions, checkpoints, mean, sum(each.bytes for each in found))


def _stored_metadata(about: SessionMetadata) -> dict[str, Any]:
    """The metadata of the thread's checkpoint."""
    time = None if about.timestamp is None else about.timestamp.isoformat()
    fields = {"node_name": about.node_name, "step": about.step, "timestamp": time}
    return {name: value for name, value in fields.items() if value is not None}


def _session_checkpoint(found: CheckpointTuple) -> SessionCheckpoint:
    """Read a thread's checkpoint as a session's. One of a graph says some of it in its own way."""
    configurable, metadata, checkpoint = found.config["configurable"], found.metadata, found.checkpoint
    node, step = metadata.get("node_name"), metadata.get("step")
    made_at = time_of_id(checkpoint["id"])
    made = None if made_at is None else time_of(made_at)
    about = SessionMetadata(
        checkpoint_id=checkpoint["id"],
        session_id=configurable["thread_id"],
        timestamp=_time(metadata.get("timestamp")) or _time(checkpoint.get("ts")) or made,
        node_name=node if isinstance(node, str) else None,
        step=step if type(step) is int else None,
    )
    return SessionCheckpoint(about, state_of(checkpoint["channel_values"]))


def _time(text: object) -> datetime | None:
    """A time with its zone, None for anything else."""
    try:
        time = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return None if time is None else time if time.tzinfo else time.replace(tzinfo=UTC)
