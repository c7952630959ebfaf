"""Calls on a SQLite file that was replaced, interrupted while the saver goes on with the new one: run as a program."""

import faulthandler
import json
import shutil
import sys
from pathlib import Path

from signals.strikes import Interruptions, Step
from threadmark_conformance.engine import at, checkpoint
from threadmark_sqlite import SqliteSaver

_DEADLINE = 30.0


def replace(path: Path, backup: Path) -> None:
    """Put a copy of the backup in the file's place."""
    shutil.copyfile(backup, path.with_suffix(".new"))
    path.with_suffix(".new").rename(path)


def main(path: Path, first: int, stride: int) -> int:
    """How many calls were interrupted; every call after one finds the new file's threads."""
    interruptions = Interruptions(KeyboardInterrupt)
    backup = path.with_suffix(".backup")
    known, made = checkpoint(checkpoint_id="1"), checkpoint(checkpoint_id="2")
    with SqliteSaver(path, durability="normal") as saver:
        saver.put(at("thread"), known, {}, {})
    shutil.copyfile(path, backup)
    with SqliteSaver(path, durability="normal") as saver:
        for call in (lambda: saver.get(at("thread")), lambda: saver.put(at("thread", "", "1"), made, {}, {})):
            location, reached = first, True
            while reached:
                faulthandler.dump_traceback_later(_DEADLINE, exit=True)
                saver.put(at("left"), known, {}, {})
                replace(path, backup)
                strike = Step(location)
                returned, _ = interruptions.during(call, strike)
                saver.put(at("next"), known, {}, {})
                assert saver.get(at("left")) is None
                assert saver.get(at("next")) is not None
                found = saver.get(at("thread"))
                assert found == made or (found == known and not (returned and "put" in call.__code__.co_names))
                assert saver.verify().problems == []
                location, reached = location + stride, strike.reached
    faulthandler.cancel_dump_traceback_later()
    return interruptions.raised


if __name__ == "__main__":
    json.dump(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])), sys.stdout)
