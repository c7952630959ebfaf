"""Paths such as `messages[-1].content`: a channel of a state, and the steps to a part of its value."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from threadmark.errors import ConfigError, short_repr
from threadmark.model import MAPPING
from threadmark.serde.steps import Index, Key, Name, Slice, Step

_LONGEST = 10_000
_MOST = 64
"""So many parts can be asked for at once."""

_DIGITS = "[0-9]{1,18}"
_CHANNEL = re.compile(r'[^.\[\]"\s][^.\[\]"]*')
_QUOTED = re.compile(r'\[("(?:[^"\\]|\\.)*")\]', re.DOTALL)
_NAME = re.compile(r"\.([^\W\d]\w*)")
_INDEX = re.compile(rf"\[(-?{_DIGITS})\]")
_SLICE = re.compile(rf"\[(-?{_DIGITS})?:(-?{_DIGITS})?\]")

_WAY_OUT = 'write a channel, then .name, ["key"], [3] or [-20:], such as messages[-1].content'


class Path(NamedTuple):
    """A channel, and the steps from its value to a part of it."""

    channel: str
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return channel_text(self.channel) + "".join(map(_step_text, self.steps))


def parse_path(path: object) -> Path:
    """Parse a path. Raises ConfigError, with the place, for text that is none."""
    if not isinstance(path, str):
        raise ConfigError(f"a path must be text such as 'messages[-1].content', not {short_repr(path)}")
    text = str(path)
    if len(text) > _LONGEST:
        raise ConfigError(f"a path of {len(text):,} characters is too long: {_LONGEST:,} are the most")
    channel, place = _channel(text)
    steps: list[Step] = []
    while place < len(text):
        step, place = _step(text, place)
        steps.append(step)
    return Path(channel, tuple(steps))


def parse_paths(paths: object) -> dict[str, Path]:
    """Parse the paths of a listing, by the names of their parts in the result."""
    if paths is None:
        return {}
    if not isinstance(paths, MAPPING):
        raise ConfigError(f"extract must be a dictionary from names to paths, not {short_repr(paths)}")
    if len(paths) > _MOST:
        raise ConfigError(f"extract has {len(paths)} paths: {_MOST} are the most")
    return {_name(name): parse_path(path) for name, path in paths.items()}


def channel_text(channel: str) -> str:
    """Return the beginning of a path to a channel."""
    return channel if _CHANNEL.fullmatch(channel) else key_text(channel)


def key_text(key: str) -> str:
    """Return the step to the value of a dictionary's key."""
    return f"[{json.dumps(key, ensure_ascii=False)}]"


def name_text(name: str) -> str | None:
    """Return the step to a field of an object. None if no path leads to it."""
    step = f".{name}"
    return step if _NAME.fullmatch(step) and not name.startswith("__") else None


def _step_text(step: Step) -> str:
    match step:
        case Name(text):
            return f".{text}"
        case Key(text):
            return key_text(text)
        case Index(number):
            return f"[{number}]"
        case Slice(start, stop):
            return f"[{'' if start is None else start}:{'' if stop is None else stop}]"


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise ConfigError(f"the names in extract must be strings, not {short_repr(name)}")
    return str(name)


def _channel(text: str) -> tuple[str, int]:
    if match := _CHANNEL.match(text):
        return match[0], match.end()
    if match := _QUOTED.match(text):
        return _unquoted(text, match), match.end()
    raise _error(text, 0, "a path begins with the name of a channel")


def _step(text: str, place: int) -> tuple[Step, int]:
    for form, make in _FORMS.items():
        if match := form.match(text, place):
            return make(text, match), match.end()
    raise _error(text, place, "there is no step like this")


def _named(text: str, match: re.Match[str]) -> Step:
    if match[1].startswith("__"):
        raise _error(text, match.start(), "only fields can be read, and this is none")
    return Name(match[1])


def _keyed(text: str, match: re.Match[str]) -> Step:
    return Key(_unquoted(text, match))


def _unquoted(text: str, match: re.Match[str]) -> str:
    try:
        key: str = json.loads(match[1], strict=False)
    except ValueError as error:
        raise _error(text, match.start(1), "the key is no JSON string") from error
    return key


def _number(digits: str | None) -> int | None:
    return None if digits is None else int(digits)


_FORMS: Mapping[re.Pattern[str], Callable[[str, Any], Step]] = {
    _NAME: _named,
    _QUOTED: _keyed,
    _INDEX: lambda _, match: Index(int(match[1])),
    _SLICE: lambda _, match: Slice(_number(match[1]), _number(match[2])),
}


def _error(text: str, place: int, problem: str) -> ConfigError:
    rest = f", at {short_repr(text[place:])}" if place < len(text) else ", where it ends"
    where = f"the path {short_repr(text)} cannot be read from character {place + 1} on{rest}"
    return ConfigError(f"{where}: {problem}; {_WAY_OUT}")
