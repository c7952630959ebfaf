"""The shapes that describe a thread's past: history, branches, differences and search results."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

from threadmark.model import Metadata, Problem

ChangeKind = Literal["added", "removed", "changed"]
"""How a part of a state changed."""

EditKind = Literal["equal", "added", "removed"]
"""How a piece of a text changed."""

MatchPlace = Literal["values", "writes", "metadata"]
"""The place of a text in a match of `search`: a channel's value, a pending write, or a checkpoint's metadata."""


class WriteInfo(NamedTuple):
    """A pending write without its value."""

    task_id: str
    node: str | None
    """The node whose task wrote it, if that is recorded."""
    channel: str
    size_bytes: int
    """The stored size of its row. Segments that it shares with the state are not counted."""


class HistoryEntry(NamedTuple):
    """A checkpoint in a history: everything except values."""

    ns: str
    id: str
    parent: str | None
    created_at: datetime
    step: int | None
    source: str | None
    """The origin that its metadata names: "input", "loop", "update", "fork" ..."""
    nodes: list[str]
    """The nodes that ran in the step before it, as far as they are known."""
    changed: list[str]
    """The channels whose versions differ from the parent's, in order."""
    writes: list[WriteInfo]
    """The writes that tasks of the next step have stored already."""
    size_bytes: int
    """The stored size of its row: header and metadata."""
    metadata: Metadata
    problem: Problem | None = None
    """The damage, if there is any. Fields that cannot be read are empty then."""


class HistoryPage(NamedTuple):
    """Some checkpoints, newest first, and the cursor for older ones, which is None on the last page."""

    entries: list[HistoryEntry]
    cursor: str | None
    problems: Sequence[Problem] = ()
    """Known gaps in the thread. They are reported on the last page, when all checkpoints are counted."""


class TreeNode(NamedTuple):
    """A checkpoint in a tree."""

    ns: str
    id: str
    parent: str | None
    """The parent in the same namespace. It may be missing from the tree if it was pruned."""
    created_at: datetime
    step: int | None
    source: str | None
    branch: int
    """The index of its branch in `Tree.branches`."""


class Branch(NamedTuple):
    """A line of checkpoints without forks. It ends at its head, a checkpoint without children."""

    ns: str
    head: str
    start: str
    """Its first checkpoint."""
    forked_from: str | None
    """The checkpoint of another branch that the first one follows, or None if it follows none or one that was removed.
    """
    checkpoints: int
    is_newest: bool
    """Whether its head is the newest checkpoint of the namespace, from which a run goes on by default."""


class Tree(NamedTuple):
    """All checkpoints of a thread and their order, across namespaces."""

    thread_id: str
    nodes: list[TreeNode]
    """Newest first."""
    branches: list[Branch]
    """Branches with the newest heads first. If a checkpoint has several children, its branch continues to the child
    with the newest descendant; each of the other children begins a branch."""
    problems: Sequence[Problem] = ()
    """Gaps in the thread: checkpoints that are recorded but missing."""


class Edit(NamedTuple):
    """A piece of a text that was kept, added or removed. The pieces in order make up both texts."""

    kind: EditKind
    text: str


class ValueChange(NamedTuple):
    """A change of one part of a state."""

    path: str
    """Its place, as `Saver.extract` reads it: `messages[-1].content`. For a removed part it is the place in the old
    state, otherwise in the new one."""
    kind: ChangeKind
    before: Any = None
    after: Any = None
    edits: Sequence[Edit] = ()
    """The edits from one text to the other: by lines for texts of several lines, by words for one line."""


class Diff(NamedTuple):
    """The differences between two checkpoints of a thread."""

    changes: list[ValueChange]
    """Sorted by channel, then by place."""
    equal: list[str]
    """The channels that are the same in both."""
    left_out: int
    """The number of changes beyond the limit."""
    bytes_read: int
    """The bytes of segments that the comparison read."""
    deltas: Sequence[str] = ()
    """The delta channels that were written in between. They are stored as changes, so no values are compared."""


class Blame(NamedTuple):
    """The origin of the present value of a part."""

    path: str
    value: Any
    entry: HistoryEntry
    """The checkpoint since which the part has had this value without a break."""


class Match(NamedTuple):
    """A place where `search` found a text."""

    ns: str
    id: str
    """The checkpoint that first had the text there, or the one to which the pending write belongs."""
    place: MatchPlace
    path: str
    """For a value or a write, it begins with the channel."""
    before: str
    text: str
    """The text as it is written there."""
    after: str


class SearchPage(NamedTuple):
    """Some matches, newest checkpoint first, and the cursor for older ones, which is None at the end.

    A page may have fewer matches than the limit, or none, and still a cursor: a call reads a limited number of bytes.
    """

    matches: list[Match]
    cursor: str | None
    problems: Sequence[Problem] = ()
    """The checkpoints on this page that could not be searched because they are damaged or unreadable. The last page
    adds known gaps in the thread."""


Values = Mapping[str, Any]
"""New values of channels."""
