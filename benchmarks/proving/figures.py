"""Reads the figures of an attack from the output of its script: rounds, faults met and losses."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple


class Figures(NamedTuple):
    """The figures of an attack, as the page names them."""

    rounds: str
    faults: str
    losses: int
    """Everything that the guarantee rules out: lost, torn, doubled, out of order."""


Reader = Callable[[str], Figures]


def number(value: int) -> str:
    """A number as the page writes it."""
    return f"{value:,}"


def counts(found: Iterable[tuple[str, int]]) -> str:
    """Counts with their names, those that are 0 too: a fault that was not met has proved nothing."""
    return ", ".join(f"{number(value)} {name}" for name, value in found)


def _fields(output: str) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(output[output.index("{") :])
    return fields


def _numbers(pattern: str, output: str) -> list[int]:
    """The sums of the groups of all matches."""
    found = re.findall(pattern, output)
    if not found:
        raise ValueError(f"{pattern!r} is not in the output")
    rows = [(each,) if isinstance(each, str) else each for each in found]
    return [sum(int(value.replace(",", "")) for value in column) for column in zip(*rows, strict=True)]


def killed_runs(output: str) -> Figures:
    """Read the figures of crash_rounds."""
    found = _fields(output)
    return Figures(
        f"{number(found['threads'])} threads with {number(found['tasks_run'])} tasks",
        f"{number(found['killed'])} processes killed",
        found["lost"] + found["repeated"],
    )


def power_cuts(output: str) -> Figures:
    """Read the figures of power_cuts."""
    operations, events, states, unsynced, objections = _numbers(
        r"(\d+) operations, (\d+) events, \d+ syncs, (\d+) states, \d+ distinct, (\d+) unsynced, .* (\d+) objections",
        output,
    )
    return Figures(
        f"{number(states)} disks, of {number(operations)} operations",
        f"power cuts around {number(events)} writes, syncs, truncations and renames; "
        f"{number(unsynced)} disks lacked a part of the unsynced changes",
        objections,
    )


def killed_servers(output: str) -> Figures:
    """Read the figures of redis_rounds."""
    found = _fields(output)
    return Figures(
        f"{number(found['puts'])} puts and {number(found['batches'])} batches of writes",
        f"{number(found['killed'])} servers killed",
        len(found["lost_or_torn"]),
    )


def transactions(output: str) -> Figures:
    """Read the figures of transaction_rounds."""
    found = _fields(output)
    return Figures(
        f"{number(found['committed'])} transactions acknowledged before a kill",
        f"{number(found['killed'])} processes killed, {number(found['in_a_transaction'])} in a transaction",
        found["apart"] + found["lost"],
    )


def damage(output: str) -> Figures:
    """Read the figures of damage_rounds."""
    (flipped,) = _numbers(r"(\d+) single-bit damages", output)
    none, refused, *wrong = (
        _numbers(rf"{name}: +(\d+)", output)[0]
        for name in ("without effect on any answer", "an error", "an answer that lacks a part", "a wrong answer")
    )
    (unnamed,) = _numbers(r"not named by verify: +(\d+)", output)
    return Figures(
        f"everything was read {number(flipped)} times",
        f"{number(flipped)} bits flipped: {number(refused)} gave an error, {number(none)} changed no answer",
        sum(wrong) + unnamed,
    )


def values(output: str) -> Figures:
    """Read the figures of serde_exact, which ends at the first value that differs."""
    same, refused = (
        sum(map(int, re.findall(rf"{kind}': (\d+)", output))) for kind in ("the same", "refused with its place")
    )
    (made,) = _numbers(r"^([\d,]+) values", output)
    return Figures(
        f"{number(made)} values",
        f"{number(refused)} were refused with their place, {number(same)} came back the same",
        0,
    )


def damaged_values(output: str) -> Figures:
    """Read the figures of serde_fuzz, which ends at the first input that does anything else."""
    inputs, outcomes = _numbers(r"^([\d,]+) inputs", output)[0], re.findall(r"'([\w ]+)': (\d+)", output)
    kinds = counts((name.replace("a value", "a value again"), int(count)) for name, count in outcomes)
    return Figures(f"{number(inputs)} damaged values", f"the outcomes: {kinds}", 0)


class HistoryRow(NamedTuple):
    """A row of the table of history_rounds."""

    maker: str
    backend: str
    deletes: str
    kinds: dict[str, int]
    """The answers that no order explains, by kind."""
    rounds: int
    calls: int
    failed: int
    refused: int
    threads: int
    disordered: int
    undecided: int
    forks: int
    orphans: int

    @property
    def losses(self) -> int:
        """Failed calls, and answers without an order; a list on Redis reads in steps, and is of no one moment."""
        allowed = self.kinds.get("no moment", 0) if self.backend == "redis" else 0
        return self.failed + self.undecided + self.orphans + sum(self.kinds.values()) - allowed


def history_rows(output: str) -> Iterator[HistoryRow]:
    """Read the table of history_rounds."""
    for line in output.splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        if cells[0].startswith(("Threadmark ", "LangGraph ")) and len(cells) == len(HistoryRow._fields) - 1:
            kinds = {kind: int(count) for count, kind in re.findall(r"(\d+) ([a-z ]+)", cells[-1])}
            maker, _, backend = cells[0].partition(" ")
            yield HistoryRow(maker, backend, cells[1], kinds, *map(int, cells[2:-1]))


def histories(output: str) -> Figures:
    """Read the figures of Threadmark's savers in history_rounds."""
    rows = [row for row in history_rows(output) if row.maker == "Threadmark"]
    if not rows:
        raise ValueError("there is no row of Threadmark's savers")
    steps = sum(row.kinds.get("no moment", 0) for row in rows if row.backend == "redis")
    return Figures(
        f"{number(sum(row.calls for row in rows))} calls on {number(sum(row.threads for row in rows))} threads",
        f"six clients at once; {number(sum(row.refused for row in rows))} puts after a deletion were refused; "
        f"{number(steps)} lists on Redis were of no one moment, as documented",
        sum(row.losses for row in rows),
    )


def locks(output: str) -> Figures:
    """Read the figures of lock_rounds."""
    (times,) = _numbers(r"\| [a-z_]+ \| ([\d,]+) \|", output)
    found = _numbers(r"deadlocks: (\d+); failures: (\d+); problems found afterwards: (\d+)", output)
    return Figures(f"{number(times)} operations", "16 clients of 4 processes at once on one thread", sum(found))


def leases(output: str) -> Figures:
    """Read the figures of lease_rounds."""
    found = _fields(output)
    return Figures(
        f"{number(found['checkpoints'])} checkpoints, {number(found['hand_overs'])} hand-overs",
        counts(
            (
                ("stops of a process for longer than its lease", found["stopped"]),
                ("connections ended", found["killed_connections"]),
                ("late writes refused", found["refused"]),
            )
        ),
        found["lost"] + found["forks"] + found["late"],
    )


def lost_answers(output: str) -> Figures:
    """Read the figures of lost_answers."""
    rounds, lost, objections = _numbers(r"(\d+) rounds, (\d+) answers lost, (\d+) objections", output)
    places = {line.split(",")[0] for line in output.splitlines() if " rounds, " in line}
    where = " and ".join(sorted(place.capitalize() for place in places))
    return Figures(f"{number(rounds)} operations", f"{number(lost)} answers lost, on {where}", objections)


def pairs(output: str) -> Figures:
    """Read the figures of replication_rounds."""
    row = re.search(r"^\| all \|(.*)\|$", output, re.MULTILINE)
    if row is None:
        raise ValueError("there is no row of all pairs")
    rounds, acknowledged, _, unknown, moved, *_, objections, _ = map(float, row[1].split("|"))
    return Figures(
        f"{number(int(acknowledged))} acknowledged operations in {number(int(rounds))} rounds",
        f"{number(int(rounds))} times a server or workers broke; the writes moved {number(int(moved))} times; "
        f"{number(int(unknown))} calls ended with an unknown outcome",
        int(objections),
    )


_HARMS = (
    *("killed before it counted", "killed after it counted", "killed after the answer", "stopped"),
    *("closed before it counted", "closed after it counted", "lost connections"),
)


def effects(output: str) -> Figures:
    """Read the figures of effect_rounds."""
    found = _fields(output)
    met = counts((name, found[name]) for name in _HARMS if name in found)
    return Figures(f"{number(found['calls'])} calls", met, found["lost"] + found["twice"])


def worlds(output: str) -> Figures:
    """Read the figures of the simulator."""
    ((seeds, failed),) = [_numbers(r"([\d,]+) seeds in .* a minute, (\d+) failed", output)]
    met = Counter({name: int(count.replace(",", "")) for count, name in re.findall(r"^ +([\d,]+)  (.+)$", output, 8)})
    return Figures(f"{number(seeds)} worlds", counts(met.most_common()), failed)


def soak(output: str) -> Figures:
    """Read the figures of soak."""
    finished, cancelled, lost = _numbers(
        r"runs finished: ([\d,]+); steps cancelled: ([\d,]+)\nnot flat: .*; lost runs: (\d+)", output
    )
    rising = len(re.findall(r"NOT FLAT", output))
    flat = len(re.findall(r"\| flat \|", output))
    problems = not output.rstrip().endswith("problems: []")
    return Figures(
        f"{number(finished)} runs; {flat} of {flat + rising} quantities were flat",
        f"{number(cancelled)} steps cancelled",
        lost + rising + problems,
    )
