"""Values of options: lengths of time, and options in a URL (`sqlite:///agents.db?durability=normal&timeout=5`)."""

from datetime import timedelta
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints
from urllib.parse import unquote_plus

from threadmark.errors import ConfigError, short_repr


def checked_duration(duration: object, name: str, *, positive: bool = True) -> timedelta:
    """Return a length of time; a number counts seconds. Raises ConfigError for anything else."""
    length = duration
    if isinstance(duration, (int, float)) and not isinstance(duration, bool):
        try:
            length = timedelta(seconds=duration)
        except (OverflowError, ValueError):
            length = None
    if not isinstance(length, timedelta) or (positive and length <= timedelta(0)):
        kind = "a positive" if positive else "a"
        raise ConfigError(f"{name} must be {kind} datetime.timedelta or number of seconds, not {short_repr(duration)}")
    return length


def options_in(url: str, options: type) -> tuple[str, dict[str, Any]]:
    """Take the options of a saver from the query of a URL, such as `?durability=normal&timeout=5`.

    Returns the URL without them, and their values. `options` is the TypedDict of the saver's options. Parameters of
    other names stay in the URL: they are the driver's. Raises ConfigError for a value that does not fit, a name that
    is almost an option's, or an option that is no text, number or flag. It shows nothing from the URL, which may be a
    part of a password.
    """
    beginning, question, query = url.partition("?")
    if not question:
        return url, {}
    known = get_type_hints(options)
    rest, found = [], {}
    for parameter in query.split("&"):
        name, _, text = parameter.partition("=")
        if name in known:
            found[name] = option_in_url(name, unquote_plus(text), known[name])
        elif meant := get_close_matches(name, known, n=1, cutoff=_ALMOST):
            raise ConfigError(
                f"the URL has an unknown option, did you mean {meant[0]!r}? The saver takes {', '.join(known)}"
            )
        else:
            rest.append(parameter)
    return beginning + (question + "&".join(rest) if rest else ""), found


_ALMOST = 0.8
"""No parameter of libpq, redis-py or SQLite is as similar to an option as this."""
_WRITTEN = {bool: "true or false", int: "a whole number", float: "a number"}
_FLAGS = {"true": True, "1": True, "false": False, "0": False}


def option_in_url(name: str, text: str, kind: Any) -> Any:
    """Return the value of an option, or of another argument, that is written in a URL. `kind` is its type."""
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    if text == "none" and NoneType in kinds:
        return None
    for each in kinds:
        try:
            if get_origin(each) is Literal or each is str:
                return text
            if each is bool:
                return _FLAGS[text.lower()]
            if each in (int, float):
                return each(text)
        except (KeyError, ValueError):
            raise ConfigError(f"the URL gives {name} no valid value: write {_WRITTEN[each]}") from None
    raise ConfigError(f"{name} cannot be written in a URL: give it as an argument")
