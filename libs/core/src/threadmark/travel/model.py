"""The shapes of what a saver tells about a thread's past: its history, its branches, what differs, what was found."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

from threadmark.model import Metadata, Problem

ChangeKind = Literal["added", "removed", "changed"]
"""What became of a part of a state."""

EditKind = Literal["equal", "added", "removed"]
"""What became of a piece of a text."""

MatchPlace = Literal["values", "writes", "metadata"]
"""Where `search` found a text: in a channel's value, in a pending write, or in a checkpoint's metadata."""


class WriteInfo(NamedTuple):
    """A pending write without its value."""

    task_id: str
    node: str | None
    """The node whose task wrote it, where that is recorded."""
    channel: str
    size_bytes: int
    """Of its row, as it is stored. Segments that it shares with the state are not counted."""


class HistoryEntry(NamedTuple):
    """A checkpoint as a history shows it: everything but values."""

    ns: str
    id: str
    parent: str | None
    created_at: datetime
    step: int | None
    source: str | None
    """What made it, as its metadata says: "input", "loop", "update", "fork" ..."""
    nodes: Sequence[str]
    """The nodes that ran in the step that led to it, as far as it can be told."""
    changed: Sequence[str]
    """The channels whose versions differ from the parent's, in order."""
    writes: Sequence[WriteInfo]
    """What tasks of the next step have written already."""
    size_bytes: int
    """Of its row, as it is stored: header and metadata."""
    metadata: Metadata
    problem: Problem | None = None
    """What is wrong with it. What cannot be told then is empty."""


class HistoryPage(NamedTuple):
    """Some checkpoints, newest first, and the cursor with which older ones are found; None where these are the last."""

    entries: list[HistoryEntry]
    cursor: str | None
    problems: Sequence[Problem] = ()
    """What the thread lacks, as far as that is known: said where these are the last, because then all are counted."""


class TreeNode(NamedTuple):
    """A checkpoint in a tree."""

    ns: str
    id: str
    parent: str | None
    """Of the same namespace. It may be missing from the tree, where it was pruned."""
    created_at: datetime
    step: int | None
    source: str | None
    branch: int
    """The index in `Tree.branches` of the branch that it belongs to."""


class Branch(NamedTuple):
    """A line of checkpoints without forks: it ends at a checkpoint that has no children, its head."""

    ns: str
    head: str
    start: str
    """Its first checkpoint."""
    forked_from: str | None
    """The checkpoint of another branch that the first one follows. None where it follows none, or one that was
    removed."""
    checkpoints: int
    is_newest: bool
    """Whether its head is the newest checkpoint of the namespace, where a run goes on that names none."""


class Tree(NamedTuple):
    """All checkpoints of a thread and how they follow from each other, across namespaces."""

    thread_id: str
    nodes: list[TreeNode]
    """Newest first."""
    branches: list[Branch]
    """Those with the newest heads first. Where a checkpoint has several children, the line goes on to the one with the
    newest descendant; the others begin branches."""
    problems: Sequence[Problem] = ()
    """What the thread lacks: checkpoints that are recorded, and are not found."""


class Edit(NamedTuple):
    """A piece of a text that was changed. The pieces in order are both texts."""

    kind: EditKind
    text: str


class ValueChange(NamedTuple):
    """What became of one part of a state."""

    path: str
    """Where it is, as `Saver.extract` reads it: `messages[-1].content`. Of what was removed it is the place in the old
    state, else that in the new one."""
    kind: ChangeKind
    before: Any = None
    after: Any = None
    edits: Sequence[Edit] = ()
    """How one text became the other, by lines where it has several, by words where it has one."""


class Diff(NamedTuple):
    """What differs between two checkpoints of a thread."""

    changes: list[ValueChange]
    """In the order of channels, then of places."""
    equal: list[str]
    """The channels that are the same in both."""
    left_out: int
    """How many changes there are beyond the limit."""
    bytes_read: int
    """How many bytes of segments were read for it."""
    deltas: Sequence[str] = ()
    """The delta channels that were written in between. They are stored as changes, so no values are compared."""


class Blame(NamedTuple):
    """Where the present value of a part comes from."""

    path: str
    value: Any
    entry: HistoryEntry
    """The checkpoint that first held it, without a break until now."""


class Match(NamedTuple):
    """A place where `search` found a text."""

    ns: str
    id: str
    """The checkpoint that first had it there; of a pending write the one to which it belongs."""
    place: MatchPlace
    path: str
    """Of a value or a write it begins with the channel."""
    before: str
    text: str
    """The text as it stands there."""
    after: str


class SearchPage(NamedTuple):
    """Some matches, newest checkpoint first, and the cursor with which older ones are found; None at the end.

    A page may have fewer matches than were asked for, or none, and yet a cursor: so many bytes were looked at.
    """

    matches: list[Match]
    cursor: str | None
    problems: Sequence[Problem] = ()
    """The checkpoints among these that could not be searched, because they are damaged or cannot be read; and at the
    end what the thread lacks."""


Values = Mapping[str, Any]
"""New values of channels."""
