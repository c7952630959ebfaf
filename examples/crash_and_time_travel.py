"""A journey is planned step by step, its process is killed in the middle, and another one goes on.

    python examples/crash_and_time_travel.py

A saver on a SQLite file, and nothing else: put, pending writes, get, history, and time travel. Every claim
that is printed was checked; if one does not hold, the program says so and its exit status is 1.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from threadmark import CheckpointTuple, new_id
from threadmark_sqlite import SqliteSaver

Config = Mapping[str, Any]

JOURNEY: Config = {"configurable": {"thread_id": "journey"}}
LEGS = ("Lisbon to Madrid", "Madrid to Lyon", "Lyon to Turin", "Turin to Vienna", "Vienna to Prague")
FATAL_LEG = 3  # booked, but its step never ends
PATIENCE = 60.0  # seconds that the traveller waits for the seat of the fatal leg: until he is killed


def main() -> None:
    """The story, as the parent process sees it."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "journey.db")
        heard = killed_in_the_middle(path)
        with SqliteSaver(path) as saver:
            after_the_crash(saver, heard)
            arrive(saver)
            look_back(saver)
            travel_in_time(saver)
    say("Done: everything was as expected.")


def killed_in_the_middle(path: str) -> list[str]:
    """Let a child process travel and kill it. Its acknowledged writes are stored."""
    say("A child process books a journey, leg by leg. A checkpoint is put after each.")
    heard: list[str] = []
    child = subprocess.Popen([sys.executable, __file__, path], stdout=subprocess.PIPE, text=True)
    with child:
        for line in child.stdout or ():
            heard.append(line.strip())
            say(f"  child: {heard[-1]}")
            if heard[-1] == f"booked: {LEGS[FATAL_LEG]}":
                child.kill()
    check(child.returncode != 0 and len(heard) == 2 * FATAL_LEG + 1, "it was killed (SIGKILL) in the middle of a step")
    return heard


def after_the_crash(saver: SqliteSaver, heard: list[str]) -> None:
    """All acknowledged writes are there, the pending write of the unfinished step included."""
    say("Another process opens the file.")
    found = newest(saver)
    check(legs(found) == list(LEGS[:FATAL_LEG]), f"the last whole step is there: {', '.join(legs(found))}")
    check(f"arrived: {LEGS[FATAL_LEG - 1]}" in heard, "it is the last one that the child was heard is stored")
    check(pending(found) == [LEGS[FATAL_LEG]], f"so is what the killed step had booked: {LEGS[FATAL_LEG]}")


def arrive(saver: SqliteSaver) -> None:
    """Go on: the booked leg is not booked again, the others are."""
    say("It goes on where the child was killed.")
    config = arrived(saver, JOURNEY)
    say(f"  {LEGS[FATAL_LEG]}: taken over from the pending write, not booked twice")
    for leg in LEGS[FATAL_LEG + 1 :]:
        book(saver, config, leg)
        config = arrived(saver, config)
        say(f"  {leg}: booked")
    check(legs(newest(saver)) == list(LEGS), "the journey is whole, and no leg stands in it twice")


def look_back(saver: SqliteSaver) -> None:
    """The history, newest first, and a search in it."""
    say("Its history, newest first:")
    history = list(saver.list(JOURNEY))
    for found in history:
        say(f"  step {found.metadata['step']}: {len(legs(found))} legs")
    check([len(legs(found)) for found in history] == [*range(len(LEGS), -1, -1)], "every step is there, once")
    (second,) = saver.list(JOURNEY, filter={"step": 2})
    check(legs(second) == list(LEGS[:2]), "a search in the metadata finds step 2")


def travel_in_time(saver: SqliteSaver) -> None:
    """Go on from an old checkpoint: another future, and the old one stays."""
    say("Back to step 2, and from there somewhere else.")
    (second,) = saver.list(JOURNEY, filter={"step": 2})
    version = saver.get_next_version(second.checkpoint["channel_versions"]["legs"])
    other = put(saver, second.config, [*legs(second), "Lyon to Geneva"], version)
    check(legs(newest(saver))[-1] == "Lyon to Geneva", f"the journey now is: {', '.join(legs(newest(saver)))}")
    check(parent_of(newest(saver)) == id_of(second.config), "its parent is step 2")
    (old,) = saver.list(JOURNEY, filter={"step": len(LEGS)})
    check(legs(old) == list(LEGS), "the old one is still there, whole")
    check(legs(saver.get_tuple(old.config)) == list(LEGS) != legs(saver.get_tuple(other)), "each is read by its name")


def travel(path: str) -> None:
    """The work of the child."""
    with SqliteSaver(path) as saver:
        config = depart(saver)
        for number, leg in enumerate(LEGS):
            book(saver, config, leg)
            print(f"booked: {leg}", flush=True)
            if number == FATAL_LEG:
                time.sleep(PATIENCE)
            config = arrived(saver, config)
            print(f"arrived: {leg}", flush=True)


def depart(saver: SqliteSaver) -> Config:
    """Put the first checkpoint."""
    return put(saver, JOURNEY, [], 1)


def book(saver: SqliteSaver, config: Config, leg: str) -> None:
    """Do the work of the step, and store at once that it was done."""
    saver.put_writes(config, [("legs", leg)], task_id=new_id())


def arrived(saver: SqliteSaver, config: Config) -> Config:
    """End the step: put the checkpoint that holds its tasks' writes."""
    found = saver.get_tuple(config)
    if found is None:
        raise SystemExit("FAILED: the journey is not there")
    version = saver.get_next_version(found.checkpoint["channel_versions"]["legs"])
    return put(saver, found.config, [*legs(found), *pending(found)], version)


def put(saver: SqliteSaver, config: Config, legs: list[str], version: Any) -> Config:
    """Put one checkpoint."""
    versions = {"legs": version}
    return saver.put(
        config,
        {
            "v": 4,
            "id": new_id(),
            "ts": datetime.now(UTC).isoformat(),
            "channel_values": {"legs": legs},
            "channel_versions": versions,
            "versions_seen": {},
        },
        {"source": "loop", "step": len(legs)},
        versions,
    )


def newest(saver: SqliteSaver) -> CheckpointTuple:
    """The newest checkpoint of the journey."""
    found = saver.get_tuple(JOURNEY)
    if found is None:
        raise SystemExit("FAILED: the journey is not there")
    return found


def legs(found: CheckpointTuple | None) -> list[str]:
    """The legs travelled at a checkpoint."""
    return list(found.checkpoint["channel_values"]["legs"]) if found else []


def pending(found: CheckpointTuple) -> list[str]:
    """The legs that were booked after it, in a step that has not ended."""
    return [value for _, channel, value in found.pending_writes or () if channel == "legs"]


def id_of(config: Config | None) -> str | None:
    """The checkpoint that a configuration names."""
    return config["configurable"]["checkpoint_id"] if config else None


def parent_of(found: CheckpointTuple) -> str | None:
    """The checkpoint that this one came from."""
    return id_of(found.parent_config)


def check(holds: bool, claim: str) -> None:  # noqa: FBT001 - the claim, and whether it is true
    """Print a claim that holds, or end the program."""
    if not holds:
        raise SystemExit(f"FAILED: not true that {claim}")
    say(f"  checked: {claim}")


def say(line: str) -> None:
    """A line of the story."""
    print(line, flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        travel(sys.argv[1])
    else:
        main()
