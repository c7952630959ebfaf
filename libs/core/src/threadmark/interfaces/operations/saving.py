"""Saving: a state becomes the newest checkpoint of its thread, or takes the place of one of the same id."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from threadmark.config import parse_config
from threadmark.errors import ConfigError, ConflictError, ThreadDeletedError, TransientStoreError
from threadmark.interfaces.operations.channels import StateDraft
from threadmark.interfaces.operations.marks import Mark
from threadmark.interfaces.operations.newest import newest_rows
from threadmark.names import ID_BYTES, check_length
from threadmark.program import Operation, Program, read
from threadmark.saver.arguments import check_config
from threadmark.saver.context import SaverContext
from threadmark.saver.loading.decoding import decode_metadata
from threadmark.saver.operations.writing import store
from threadmark.store import Scope

_ATTEMPTS = 64
"""How often a place is looked for. Each time somebody else was faster, and has saved."""

_SOURCES = ("input", "loop", "update", "fork")
"""What made a checkpoint of LangGraph, as its metadata says."""


class _Place(NamedTuple):
    """Where a state belongs."""

    parent: str | None
    rank: str | None
    """That of the checkpoint that it replaces."""
    in_graph: Mapping[str, Any]
    """The metadata that a graph needs to go on from it. Empty where no graph stored the parent."""


_FIRST = _Place(None, None, {})


def config_of(thread_id: str, checkpoint_id: str | None = None, lease_token: int | None = None) -> dict[str, Any]:
    """Return the configuration of a thread, or of one of its checkpoints."""
    if thread_id is None:
        raise ConfigError("the id of a thread, or session, must be a string, an int or a UUID, not None")
    if checkpoint_id == "":
        raise ConfigError("an empty id is none: None stands for the newest, or for all")
    configurable = {"thread_id": thread_id, "checkpoint_ns": "", "checkpoint_id": checkpoint_id}
    return {"configurable": configurable if lease_token is None else {**configurable, "lease_token": lease_token}}


def save(
    context: SaverContext,
    config: Mapping[str, Any],
    draft: StateDraft,
    metadata: Mapping[str, Any],
    mark: Mark | None,
    *,
    replaces: bool = False,
) -> Operation[dict[str, Any]]:
    """Store a draft as the newest of its thread, or with `replaces` in the place of one of its id. Returns its config.

    Of several who save at once, each has the one before as its parent; where others are always faster, the last attempt
    is stored beside theirs.
    """
    where = parse_config(config)
    check_config(where)
    check_length(draft.id, ID_BYTES, "checkpoint_id")
    for attempt in range(1, _ATTEMPTS + 1):
        place = yield from read(_place, context, where.thread_id, draft.id if replaces else None, attempt)
        try:
            return (
                yield from store(
                    context,
                    config,
                    where._replace(checkpoint_id=place.parent),
                    draft,
                    {**place.in_graph, **metadata},
                    expect_newest=place.rank is None and attempt < _ATTEMPTS,
                    replaced_rank=place.rank,
                    about_thread=mark if place == _FIRST else None,
                )
            )
        except (ConflictError, ThreadDeletedError):  # what is deleted meanwhile begins anew, as if it had gone before
            continue
    raise TransientStoreError(f"{where} is deleted and begun anew all the time, so that nothing was stored: try again")


def _place(context: SaverContext, thread_id: str, own_id: str | None, attempt: int) -> Program[_Place]:
    if own_id is not None:
        same = yield from context.store.page(Scope(thread_id, "", own_id), None, 1)
        if same:
            return _Place(same[0].parent, same[0].rank, _in_graph(decode_metadata(same[0]), steps=0))
    if attempt > 1:  # another one was the newest: somebody was faster, or its row is damaged and was not found
        yield from newest_rows(context, [thread_id])
    newest = yield from context.store.page(Scope(thread_id, ""), None, 1)
    return _Place(newest[0].id, None, _in_graph(decode_metadata(newest[0]), steps=1)) if newest else _FIRST


def _in_graph(metadata: Mapping[str, Any], steps: int) -> dict[str, Any]:
    """The metadata of LangGraph for an update by hand, so many steps after a checkpoint of a graph."""
    source, step, parents = (metadata.get(key) for key in ("source", "step", "parents"))
    if source in _SOURCES and type(step) is int and isinstance(parents, dict):
        return {"source": "update", "step": step + steps, "parents": {}}
    return {}
