"""The keys of a sealed database, from a file: a command line is seen by everybody on the machine."""

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from threadmark import ConfigError, Keyring

_FORM = (
    '{"newest": "2026", "keys": {"2026": "64 hexadecimal digits"}, "digest_secret": "64 hexadecimal digits or more"}'
)
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def read_keyring(path: str, warn: Callable[[str], object]) -> Keyring:
    """Return the keyring in a file, which is JSON with keys in hexadecimal. No error quotes what is in it."""
    file = Path(path)
    try:
        mode = file.stat().st_mode
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the keyring {path!r} cannot be read: {_reason(error)}") from error
    if stat.S_ISREG(mode) and mode & _OTHERS:
        warn(f"others may read the keyring {path}: chmod 600 {path}")
    try:
        return _keyring(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"the keyring {path!r} should be JSON of this form: {_FORM}") from None


def _keyring(given: Any) -> Keyring:
    keys = {name: bytes.fromhex(key) for name, key in given["keys"].items()}
    return Keyring(keys, given["newest"], digest_secret=bytes.fromhex(given["digest_secret"]))


def _reason(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else "it is not UTF-8 text"
