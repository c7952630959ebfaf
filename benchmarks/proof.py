"""The proof of the guarantees: attacks each of them, keeps the outputs, and writes docs/proof.md from them.

    make proof                        the short forms, in half an hour on two cores
    make proof PROOF=--long           the long forms, for a day and a night
    make proof PROOF='--only soak'    the attacks whose name has this in it; other results stay as they are
    make proof PROOF=--page           only the page, from the results that are kept

Every attack is a script of its own, which fails if anything was lost, torn or done twice. Its output is kept in
benchmarks/proof.jsonl with its command, date, commit and versions, in place of the last one of this attack and form. To
keep the output of a script that you have run by hand, name the attack, and say when it ran and on which commit:

    python benchmarks/proof.py --take power_cuts --long --output FILE --date 2026-01-31 --commit 0123456789
        --seconds 3600 --command 'python benchmarks/power_cuts.py --states 100000'
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import servers
from proving.attacks import NEWEST_POSTGRES, POSTGRES, REDIS, Attack, attacks
from proving.page import PAGE, page
from proving.records import ROOT, Record, append, commit, load, versions

_LONGEST = 1800
"""Seconds after which a short form is ended, and counts as failed."""


def main() -> int:
    """Attack, write the page, and return 1 if a guarantee did not hold."""
    chosen = _arguments()
    held = True
    if chosen.take:
        append(_taken(chosen))
    elif not chosen.page:
        some = [attack for attack in attacks() if chosen.only in attack.name]
        with ThreadPoolExecutor(chosen.at_once) as pool:
            for record in pool.map(partial(_run, long=chosen.long), some):
                append(record)
                held &= record.held
                sys.stderr.write(f"{record.output}\n\n")
    PAGE.write_text(page(load()), encoding="utf-8")
    return int(not held)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true", help="the long forms")
    parser.add_argument("--only", default="", help="attacks whose name has this in it")
    parser.add_argument("--at-once", type=int, default=1, help="so many attacks at the same time")
    parser.add_argument("--page", action="store_true", help="only write the page")
    parser.add_argument("--take", choices=[attack.name for attack in attacks()], help="keep the output of this attack")
    for name in ("output", "command", "date", "commit"):
        parser.add_argument(f"--{name}", default="", help="of the output that is taken")
    parser.add_argument("--seconds", type=int, default=0, help="of the output that is taken")
    return parser.parse_args()


def _taken(chosen: argparse.Namespace) -> Record:
    attack = next(each for each in attacks() if each.name == chosen.take)
    if not (chosen.output and chosen.command and chosen.date and chosen.commit and chosen.seconds):
        raise SystemExit("--take needs --output, --command, --date, --commit and --seconds")
    output = Path(chosen.output).read_text(encoding="utf-8").strip()
    attack.read(output)  # it must be an output of this script
    form = "long" if chosen.long else "short"
    environment = _environment(attack, long=chosen.long)
    return Record(
        *(attack.name, form, chosen.command, chosen.date, chosen.commit, chosen.seconds),
        held=True,
        versions=versions(environment),
        output=output,
    )


def _run(attack: Attack, *, long: bool) -> Record:
    command = attack.command(long=long)
    environment = _environment(attack, long=long)
    sys.stderr.write(f"{command}\n")
    date, at, begun = f"{datetime.now(UTC):%Y-%m-%d}", commit(), time.monotonic()
    with _servers(command) as urls:
        held, output = _ended([sys.executable, *attack.words(urls, long=long)], environment, long=long)
    if held:
        held = attack.read(output).losses == 0 or "LangGraph" in attack.name
    seconds, form = round(time.monotonic() - begun), "long" if long else "short"
    return Record(attack.name, form, command, date, at, seconds, held, versions(environment), output)


def _ended(words: list[str], environment: dict[str, str], *, long: bool) -> tuple[bool, str]:
    """Whether a script ended well, and its output."""
    paths = os.pathsep.join([str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])])
    try:
        done = subprocess.run(  # noqa: S603 - scripts of this project
            words,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **environment, "PYTHONPATH": paths},
            timeout=None if long else _LONGEST,
        )
    except subprocess.TimeoutExpired:
        return False, f"it did not end in {_LONGEST} seconds"
    output = done.stdout.strip()
    return done.returncode == 0, output if done.returncode == 0 else f"{output}\n{done.stderr.strip()}".strip()


@contextmanager
def _servers(command: str) -> Iterator[dict[str, str]]:
    """The URLs of the servers that a command names, which have nothing else."""
    with ExitStack() as stack:
        urls = {}
        if POSTGRES in command:
            urls[POSTGRES] = stack.enter_context(servers.postgres(None))
        if REDIS in command:
            urls[REDIS] = stack.enter_context(servers.redis(None))
        yield urls


def _environment(attack: Attack, *, long: bool) -> dict[str, str]:
    """The settings before a command."""
    before = attack.before[long]
    if before != NEWEST_POSTGRES:
        return dict(word.split("=") for word in before.split())
    script = [sys.executable, str(ROOT / "scripts" / "newest_postgres.py")]
    found = subprocess.run(script, capture_output=True, text=True, check=True)  # noqa: S603 - a script of this project
    return {"POSTGRES_BIN": found.stdout.strip()}


if __name__ == "__main__":
    sys.exit(main())
