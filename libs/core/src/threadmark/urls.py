"""`open(url)`: the backend is chosen by the URL's scheme.

Backends announce themselves through the entry-point group `threadmark.savers`; an entry's name is its scheme, and
what it points to is called with the URL and the options. A new backend is an install away.
"""

from collections.abc import Callable, Collection, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any
from urllib.parse import parse_qsl

from threadmark.errors import ConfigError, MissingDependencyError
from threadmark.saver import SaverProtocol, expect_saver

GROUP = "threadmark.savers"

_EXAMPLES = {
    "memory": "memory:",
    "sqlite": "sqlite:///file.db",
    "postgresql": "postgresql://user@host/database",
    "redis": "redis://host:6379/0",
    "replicated": "replicated:?primary=URL&secondary=URL",
}
"""What to write for our own backends."""

_EXTRAS = {
    "sqlite": "sqlite",
    "postgresql": "postgres",
    "postgres": "postgres",
    "redis": "redis",
    "rediss": "redis",
    "redis+cluster": "redis",
    "rediss+cluster": "redis",
    "redis+sentinel": "redis",
    "rediss+sentinel": "redis",
    "redis+unix": "redis",
}
"""The extra of core that installs the backend for a scheme."""

_MEANT = {
    "file": "sqlite",
    "sqlite3": "sqlite",
    "postgres": "postgresql",
    "psycopg": "postgresql",
    "mem": "memory",
    "valkey": "redis",
    "valkeys": "redis",
    "rediss": "redis",
    "unix": "redis",
}
"""Other names for schemes, those of other libraries among them."""


def open(url: str, **options: Any) -> SaverProtocol:  # noqa: A001 - read as `threadmark.open`
    """Return a saver for `memory:`, `sqlite:///relative.db`, `sqlite:////absolute.db`, `postgresql://...` and others.

    Use it as a context manager, or close it: `with threadmark.open("sqlite:///agents.db", slow=0.1) as saver: ...`.

    Args:
        url: Its scheme names the backend, whose package has to be installed.
        **options: Those of every saver are `serde`, `cache_bytes`, `max_expansion_bytes`, `pause_gc`, `keyring` and
            `seal_metadata`. Others are the backend's own, such as `timeout` and `slow`: `help(type(saver))` says what
            they do, and so does docs/reference/options.md for our own backends. An unknown one is a ConfigError that
            lists all.
    """
    scheme = _scheme_of(url)
    known = {entry.name: entry for entry in entry_points(group=GROUP)}
    if scheme not in known:
        raise _unknown(scheme, known)
    return expect_saver(_loaded(known[scheme])(url, **options))


def parameters_in(url: str, example: str, *, needed: Collection[str], optional: Collection[str]) -> dict[str, str]:
    """Return the parameters of a URL that is written like `example`, such as `cached:?saver=URL&cache=URL`.

    Raises ConfigError for any other URL. It shows nothing of the URL, which may hold passwords.
    """
    scheme = example.partition("?")[0]
    beginning, _, query = url.partition("?")
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True)
    except ValueError:
        pairs = []
    given = dict(pairs)
    known = given.keys() <= {*needed, *optional} and given.keys() >= set(needed)
    if beginning not in (scheme, f"{scheme}//") or len(given) < len(pairs) or not known:
        raise ConfigError(
            f"this URL lacks a parameter, or has an unknown or a repeated one: write {example!r}, with both URLs "
            f"percent-encoded (urllib.parse.quote(url, safe='')). It needs {' and '.join(needed)}, and may have "
            f"{', '.join(sorted(optional))}"
        )
    return given


def _scheme_of(url: str) -> str:
    """The scheme of a URL. Raises an error that shows the URL to write for what looks like a path."""
    if not isinstance(url, str):
        raise ConfigError(f"expected a URL, got {type(url).__name__}: for a file, write 'sqlite:///file.db'")
    scheme, colon, _ = url.partition(":")
    if url == ":memory:":
        raise ConfigError("':memory:' is not a URL: write 'memory:', or 'sqlite://:memory:' for SQLite")
    if not colon and "=" in url:  # it may have a password, which is not shown
        raise ConfigError("expected a URL, got a list of parameters: write 'postgresql://user@host/database'")
    if not colon or len(scheme) == 1:  # a letter is a drive of Windows
        raise ConfigError(f"{url!r} is not a URL: write 'sqlite:///{url or 'file.db'}' for a file")
    return scheme


def _unknown(scheme: str, known: Mapping[str, EntryPoint]) -> ConfigError | MissingDependencyError:
    """What to write or to install instead of a URL with a scheme that nobody serves."""
    if scheme in _EXTRAS:
        return MissingDependencyError(
            f"the backend for {scheme!r} URLs is not installed: pip install 'threadmark[{_EXTRAS[scheme]}]'"
        )
    dialect = scheme.partition("+")[0].lower()  # as SQLAlchemy writes it: postgresql+psycopg
    meant = _MEANT.get(dialect, dialect)
    if meant in _EXAMPLES:
        return ConfigError(f"no backend serves {scheme!r} URLs: write {_EXAMPLES[meant]!r}")
    examples = sorted({_EXAMPLES.get(_MEANT.get(name, name), f"{name}:...") for name in known})
    there = ", ".join(map(repr, examples)) or "none"
    return ConfigError(
        f"no backend serves {scheme!r} URLs: write one of those that are installed ({there}), "
        "or install the package of another backend"
    )


def _loaded(entry: EntryPoint) -> Callable[..., object]:
    """What makes savers of a backend. Raises an error that says what is missing if it cannot be imported."""
    try:
        made: Callable[..., object] = entry.load()
    except MissingDependencyError:  # it says what to install
        raise
    except ImportError as missing:
        package = f"threadmark[{_EXTRAS[entry.name]}]" if entry.name in _EXTRAS else "the package that it names"
        raise MissingDependencyError(
            f"the backend for {entry.name!r} URLs cannot be imported ({missing}): install {package!r}",
            name=missing.name,
        ) from missing
    return made
