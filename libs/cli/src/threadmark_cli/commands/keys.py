"""`threadmark keys`: makes the file with the keys of a sealed database, and adds newer keys to it."""

from datetime import UTC, datetime
from itertools import count

import click

from threadmark import Keyring, keyring_file
from threadmark_cli.command import command
from threadmark_cli.session import Session
from threadmark_cli.settings import files


@command(
    "keys",
    examples="""
    threadmark keys new agents.keys          # a file with one key, which only you may read
    threadmark keys add agents.keys          # a newer key; then: threadmark reencrypt --keyring agents.keys
    """,
    has_database=False,
)
@click.argument("action", type=click.Choice(["new", "add"]))
@click.argument("file", shell_complete=files)
@click.option("--name", metavar="NAME", help="What the key is called [default: the date].")
def keys(session: Session, *, action: str, file: str, name: str | None) -> None:
    """Make the file with the keys of a sealed database (new), or add a newer key to it (add).

    A file that is there already is never replaced by a new one. Keep a copy of it apart from the database and its
    backups: if you lose the keys, you lose the data. Python reads it with threadmark.Keyring.from_file(FILE).
    """
    if action == "add":
        Keyring.from_file(file)  # a file that is not a keyring, though it looks like one, stays as it is
    key = _unused(file if action == "add" else None) if name is None else name
    # Before the file is made or changed: a bad name or a missing package leaves none behind.
    Keyring({key: bytes(32)}, key, digest_secret=bytes(32))
    if action == "new":
        keyring_file.make(file, key)
    else:
        keyring_file.add(file, key)
    Keyring.from_file(file)  # as the application will read it
    if session.out.as_json:
        session.out.record({"file": file, "newest": key})
        return
    session.out.line("made " if action == "new" else "added to ", (file, "name"), f": the newest key is {key}")
    if action == "new":
        session.out.note("Keep a copy of the file apart from the database: if you lose the keys, you lose the data.")
    else:
        session.out.note("Keep the old keys until `threadmark reencrypt` has sealed everything with the new one.")


def _unused(file: str | None) -> str:
    """The date, with a number behind it if the file has a key of that name."""
    date = datetime.now(UTC).date().isoformat()
    taken = keyring_file.parsed(keyring_file.read_text(file), keyring_file.place_of(file)).keys if file else {}
    return next(name for number in count(1) if (name := date if number == 1 else f"{date}-{number}") not in taken)
