"""How the checkpoints of a thread follow from each other."""

from collections.abc import Iterable, Mapping, Sequence

from threadmark.errors import CorruptDataError
from threadmark.metadata import from_json
from threadmark.model import Config
from threadmark.names import MESSAGES_NS
from threadmark.program import Operation, read
from threadmark.saver.context import SaverContext
from threadmark.saver.operations.parts import given_place
from threadmark.saver.operations.travel.entries import Steps, created, steps_of
from threadmark.saver.proving.completeness import lacking
from threadmark.store import Key, Outline, Scope
from threadmark.travel import Branch, Tree, TreeNode

_PAGE = 4096


def tree(context: SaverContext, thread: Config | str) -> Operation[Tree]:
    """Return all checkpoints of a thread, and the branches that they form. A conversation's messages are none."""
    thread_id = given_place(thread).thread_id
    found: dict[Key, Outline] = {}
    after: Outline | None = None
    more = True
    while more:
        page = yield from read(context.store.page, Scope(thread_id), after, _PAGE)
        before = len(found)
        for outline in page:
            if outline.ns != MESSAGES_NS:
                found.setdefault(outline.key, outline)  # the same under a smaller rank is a remainder
        more = len(page) == _PAGE and (len(found) > before or page[-1].ns == MESSAGES_NS)
        after = page[-1] if page else None
    lines = _lines(found)
    branch_of = {key: number for number, line in enumerate(lines) for key in line}
    nodes = [_node(outline, branch_of[key]) for key, outline in found.items()]
    problems = yield from read(lacking, context, thread_id, None)
    return Tree(thread_id, nodes, _branches(found, lines, branch_of), problems)


def _lines(found: Mapping[Key, Outline]) -> list[list[Key]]:
    """The checkpoints of each branch, from its head on; those with the newest heads first.

    From the newest head every ancestor is on its line, from the next one those that are on none yet. What is left then
    leads back to itself, which only damage can do.
    """
    parents = {outline.parent_key for outline in found.values()}
    heads = [key for key in found if key not in parents]
    taken: set[Key] = set()
    lines = []
    for head in [*heads, *found]:
        line: list[Key] = []
        key: Key | None = head
        while key is not None and key in found and key not in taken:
            taken.add(key)
            line.append(key)
            key = found[key].parent_key
        if line:
            lines.append(line)
    return lines


def _branches(
    found: Mapping[Key, Outline], lines: Sequence[Sequence[Key]], branch_of: Mapping[Key, int]
) -> list[Branch]:
    newest = _newest(found.values())
    branches = []
    for number, line in enumerate(lines):
        ns, head = line[0]
        parent = found[line[-1]].parent_key
        forked_from = parent[1] if parent and branch_of.get(parent, number) != number else None
        branches.append(Branch(ns, head, line[-1][1], forked_from, len(line), newest[ns] == head))
    return branches


def _newest(outlines: Iterable[Outline]) -> dict[str, str]:
    """The newest checkpoint of each namespace, of checkpoints that come newest first."""
    newest: dict[str, str] = {}
    for outline in outlines:
        newest.setdefault(outline.ns, outline.id)
    return newest


def _node(outline: Outline, branch: int) -> TreeNode:
    step, source = _steps(outline)
    return TreeNode(outline.ns, outline.id, outline.parent, created(outline), step, source, branch)


def _steps(outline: Outline) -> Steps:
    try:
        return steps_of(from_json(outline.metadata))
    except CorruptDataError:  # `history` says what is wrong with it
        return Steps(None, None)
