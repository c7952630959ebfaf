"""The keyring as JSON text, in a file or an environment variable, and how such a file is made and gets further keys.

    {"newest": "2026", "keys": {"2026": "64 hexadecimal digits"}, "digest_secret": "64 hexadecimal digits or more"}

No error quotes its content.
"""

import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from threadmark.errors import ConfigError, short_repr
from threadmark.runtime.files import sync_file, sync_folder

KEY_LENGTH = 32
LONGEST_ID = 255
"""Bytes of a key's name."""
_SECRET_LENGTH = 32
_FORM = (
    '{"newest": "2026", "keys": {"2026": "64 hexadecimal digits"}, "digest_secret": "64 hexadecimal digits or more"}'
)
_OWNER_ONLY = stat.S_IRUSR | stat.S_IWUSR


class Keys(NamedTuple):
    """The parts of a keyring."""

    keys: dict[str, bytes]
    newest: str
    digest_secret: bytes


def place_of(path: str | os.PathLike[str]) -> str:
    """Return the name of a keyring's file for an error."""
    return f"the keyring {os.fspath(path)!r}"


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a keyring's file. Raises ConfigError if it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"{place_of(path)} cannot be read: it is not UTF-8 text") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(f"{place_of(path)} cannot be read: {reason}") from error


def parsed(text: str, place: str) -> Keys:
    """Return the keys in a text. `place` names the text in the error."""
    try:
        found = json.loads(text)
        keys = {name: bytes.fromhex(key) for name, key in found["keys"].items()}
        return Keys(keys, found["newest"], bytes.fromhex(found["digest_secret"]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ConfigError(f"{place} should be JSON of this form: {_FORM}") from None


def make(path: str | os.PathLike[str], name: str) -> None:
    """Make a file with one key. A file that is there is not replaced.

    Only its owner may read it; on Windows, all who may read the files of its folder.
    """
    _check_name(name)
    content = {
        "newest": name,
        "keys": {name: os.urandom(KEY_LENGTH).hex()},
        "digest_secret": os.urandom(_SECRET_LENGTH).hex(),
    }
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
    except FileExistsError:
        raise ConfigError(
            f"{os.fspath(path)!r} is there already, and is not replaced: rows sealed with its keys would be lost"
        ) from None
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            _write(file, content)
    except BaseException:
        with suppress(OSError):
            os.unlink(path)  # noqa: PTH108 - as it was opened
        raise
    sync_folder(Path(path).resolve().parent)  # rows that are sealed with a key must not outlive it


def add(path: str | os.PathLike[str], name: str) -> None:
    """Add a key to a file, and make it the newest. The file is replaced as a whole, or stays as it is.

    One process at a time can do so: of two, the second would leave out the key of the first, with which rows may have
    been sealed by then.
    """
    _check_name(name)
    place, target = place_of(path), Path(path).resolve()
    read_text(path)  # says so if it is not there
    next_file = target.with_name(f".{target.name}.next")
    try:
        descriptor = os.open(next_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
    except FileExistsError:
        raise ConfigError(
            f"another process adds a key to {place}, or was killed while it did: if none is at work, "
            f"remove {str(next_file)!r}, and add the key again"
        ) from None
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            _write(file, _with_key(read_text(path), place, name))
        next_file.replace(target)
    except BaseException:
        next_file.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def _with_key(text: str, place: str, name: str) -> dict[str, Any]:
    if name in parsed(text, place).keys:
        raise ConfigError(f"{place} has a key {name!r} already: give another name")
    content: dict[str, Any] = json.loads(text)
    content["keys"][name] = os.urandom(KEY_LENGTH).hex()
    content["newest"] = name
    return content


def _check_name(name: str) -> None:
    if not 0 < len(name.encode("utf-8", "replace")) <= LONGEST_ID or not name.isprintable():
        raise ConfigError(f"the name of a key has 1 to {LONGEST_ID} bytes of printable text, not {short_repr(name)}")


def _write(file: TextIO, content: dict[str, Any]) -> None:
    file.write(json.dumps(content, indent=2) + "\n")
    file.flush()
    sync_file(file.fileno())
