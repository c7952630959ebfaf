"""Writes docs/proof.md from the records: never a number that no record has."""

import textwrap
from collections.abc import Iterator, Sequence

from proving.attacks import THEIRS, Attack, attacks, guarantees
from proving.figures import history_rows, number
from proving.records import ROOT, Record, newest

PAGE = ROOT / "docs" / "proof.md"
_WIDTH = 118

_BEGIN = """\
# Proof

Each guarantee of the [README](../README.md) has tests, which `make test` runs, and scripts that attack it for longer.
This page has the last results of the scripts. `make proof` runs the short forms and writes this page, and
`make proof PROOF=--long` runs the long forms. Both keep the output of each script in `benchmarks/proof.jsonl`, of which
the page is made, so each result names its own command, date and commit. Its time says how long the attack went on. It
is no measure of speed, because other work may have run on the machine.

A loss is anything that the guarantee rules out: an acknowledged write that is not there, a part of a checkpoint, a
wrong value, an answer that no order explains, a call that happened twice. The commands need separate databases:
`make proof` starts them, and `postgresql://...` and `redis://...` stand for their URLs."""

_THEIRS = """\
The same clients attack LangGraph's own savers. In `history_rounds` they share threads, with and without deletions. A
fork is a second child of one checkpoint, which every saver allows without a lease. A checkpoint without its parent was
put after its thread had been deleted; Threadmark refuses it. An answer that no order explains is a value that was torn,
stale or missing.

LangGraph promises nothing for threads that are deleted while others go on with them. Read those rows as a difference,
and not as faults."""

_EFFECTS = """\
LangGraph runs a node again if its result was not stored, so its calls may happen twice. It documents this, and it is so
with every saver, also with Threadmark's. `effect_rounds --way langgraph` counts such calls, with Threadmark's saver and
without `Effects`."""

_NOT_PROVEN = """\
* The simulator plays Threadmark's programs on the rows of its memory backend, with the isolation of the others. Its
  seeds do not reach SQL and Lua. The other scripts attack those on real servers.
* Power cuts are played for SQLite and persistent dictionaries. Postgres and Redis answer for their own disks, and the
  scripts kill their processes only.
* A disk that lies about its syncs, or that returns other bytes later, is outside of the guarantees. Threadmark notices
  damage of single bits; it cannot repair it.
* The journals and the lost answers cover the operations that their scripts list, with a few clients on one machine.
* A tool call happens once only if its receiver compares keys or can be asked ([effects](how-to/effects.md)).
* `list` on Redis reads in several steps, so its answer may be of no one moment.
* Failovers of Patroni have a separate script (`benchmarks/failover_rounds.py`), which is not part of this page.
* Citus, several machines, and other systems than Linux are not part of this page.
* A result without losses says that these rounds met none. It bounds how often one occurs, and does not exclude it."""


def page(records: Sequence[Record]) -> str:
    """Return the page."""
    known = {attack.name for attack in attacks()}
    taken = [record for record in records if record.attack in known]
    lines = [
        _BEGIN,
        "\n## Versions\n",
        *_versions(taken),
        "\n## Summary\n",
        *_summary(taken),
        *(line for each in guarantees() for line in _guarantee(each.title, each.promise, each.attacks, taken)),
        "\n## LangGraph's savers\n",
        _THEIRS,
        *_journals(taken),
        "",
        _EFFECTS,
        *(line for attack in THEIRS for line in _attack(attack, taken)),
        "\n## What is not proven\n",
        _NOT_PROVEN,
    ]
    return "\n".join(lines) + "\n"


def _versions(records: Sequence[Record]) -> Iterator[str]:
    found: dict[str, set[str]] = {}
    for record in records:
        for name, value in record.versions.items():
            found.setdefault(name, set()).add(value)
    for name, values in found.items():
        yield f"* {name}: {', '.join(sorted(values))}"


def _summary(records: Sequence[Record]) -> Iterator[str]:
    yield "| guarantee | attacks | results | losses |"
    yield "|---|---:|---:|---:|"
    for title, _, some in guarantees():
        names = {attack.name: attack for attack in some}
        ended = [record for record in records if record.attack in names]
        losses = sum(names[record.attack].read(record.output).losses for record in ended if record.held)
        failed = sum(not record.held for record in ended)
        yield f"| {title} | {len(some)} | {len(ended)} | {losses}{f', and {failed} failed' if failed else ''} |"


def _guarantee(title: str, promise: str, some: Sequence[Attack], records: Sequence[Record]) -> Iterator[str]:
    yield f"\n## {title}\n"
    yield from textwrap.wrap(promise, _WIDTH)
    for attack in some:
        yield from _attack(attack, records)


def _attack(attack: Attack, records: Sequence[Record]) -> Iterator[str]:
    yield ""
    found = list(newest(records, attack.name))
    yield from textwrap.wrap(f"**{attack.harm}.**{'' if found else ' It was not run yet.'}", _WIDTH)
    for record in found:
        yield ""
        yield from _result(attack, record)


def _result(attack: Attack, record: Record) -> Iterator[str]:
    """A list of what a record says."""
    yield from _item(f"`{record.command}`")
    if record.held:
        figures = attack.read(record.output)
        yield from _item(f"Rounds: {figures.rounds}")
        yield from _item(f"Faults met: {figures.faults}")
        lost = "Lost or repeated" if attack in THEIRS else "Losses"
        yield f"* **{lost}: {number(figures.losses)}**"
    else:
        yield "* **It failed.** Its output is in `benchmarks/proof.jsonl`"
    yield f"* {record.form} form, {record.date}, commit `{record.commit}`, {number(record.seconds)} s"


def _item(text: str) -> list[str]:
    return textwrap.wrap(f"* {text}", _WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _journals(records: Sequence[Record]) -> Iterator[str]:
    """The table of both makers, from one run of `history_rounds`."""
    for record in newest(records, "history_rounds"):
        yield f"\n`{record.command}`, {record.date}, commit `{record.commit}`:\n"
        yield "| saver | threads are deleted | calls | forks | put without parent | answers that no order explains |"
        yield "|---|---|---:|---:|---:|---|"
        for row in history_rows(record.output):
            kinds = ", ".join(f"{number(count)} {kind}" for kind, count in row.kinds.items()) or "0"
            yield (
                f"| {row.maker} {row.backend} | {row.deletes} | {number(row.calls)} | {number(row.forks)} | "
                f"{number(row.orphans)} | {kinds} |"
            )
        return
