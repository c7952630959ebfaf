"""`open(url)`: the URL's scheme chooses the backend.

Backends announce themselves through the entry-point group `threadmark.savers`. The name of an entry is its scheme, and
its object is called with the URL and the options. To add a backend, install its package.
"""

from collections.abc import Callable, Collection, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any
from urllib.parse import parse_qsl

from threadmark.errors import ConfigError, MissingDependencyError, importing
from threadmark.saver import SaverProtocol, expect_saver

GROUP = "threadmark.savers"

_EXAMPLES = {
    "memory": "memory:",
    "sqlite": "sqlite:///file.db",
    "postgresql": "postgresql://user@host/database",
    "redis": "redis://host:6379/0",
    "replicated": "replicated:?primary=URL&secondary=URL",
    "cached": "cached:?saver=URL&cache=URL",
}
"""URLs to suggest for our own backends."""

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
"""Other names for schemes, including those of other libraries."""


def open(url: str, **options: Any) -> SaverProtocol:  # noqa: A001 - read as `threadmark.open`
    """Return a saver for `memory:`, `sqlite:///relative.db`, `sqlite:////absolute.db`, `postgresql://...` and others.

    Use it as a context manager, or close it: `with threadmark.open("sqlite:///agents.db", slow=0.1) as saver: ...`. An
    option that is a text, a number or a flag may also be in the URL (`sqlite:///agents.db?slow=0.1`).

    Args:
        url: Its scheme names the backend, whose package has to be installed.
        **options: Every saver takes `serde`, `cache_bytes`, `max_expansion_bytes`, `pause_gc`, `keyring`,
            `seal_metadata`, `owner_key`, `ttl`, `refresh_on_read`, `keep_last` and `expect_newest`. Backends add their
            own, such as `timeout` and `slow`: see `help(type(saver))` and, for our backends, docs/reference/options.md.
            An unknown option raises a ConfigError that lists all.
    """
    scheme = _scheme_of(url)
    known = {entry.name: entry for entry in entry_points(group=GROUP)}
    if scheme not in known:
        raise _unknown(scheme, known)
    return expect_saver(_loaded(known[scheme])(url, **options))


def parameters_in(url: str, example: str, *, needed: Collection[str], optional: Collection[str]) -> dict[str, str]:
    """Return the parameters of a URL with the form of `example`, such as `cached:?saver=URL&cache=URL`.

    Raises ConfigError for any other URL. It shows nothing of the URL, which may hold passwords.
    """
    scheme = example.partition("?")[0]
    beginning, _, query = url.partition("?")
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True)
    except ValueError:
        pairs = []
    parameters = dict(pairs)
    known = parameters.keys() <= {*needed, *optional} and parameters.keys() >= set(needed)
    if beginning not in (scheme, f"{scheme}//") or len(parameters) < len(pairs) or not known:
        raise ConfigError(
            f"this URL lacks a parameter, or has an unknown or a repeated one: write {example!r}, with both URLs "
            f"percent-encoded (urllib.parse.quote(url, safe='')). It needs {' and '.join(needed)}, and may have "
            f"{', '.join(sorted(optional))}"
        )
    return parameters


def _scheme_of(url: str) -> str:
    """Return the scheme of a URL. For text that looks like a path, raise an error that shows the URL to write."""
    if not isinstance(url, str):
        raise ConfigError(f"expected a URL, got {type(url).__name__}: for a file, write 'sqlite:///file.db'")
    scheme, colon, _ = url.partition(":")
    if url in (":memory:", "memory"):
        raise ConfigError(f"{url!r} is not a URL: write 'memory:', or 'sqlite://:memory:' for SQLite")
    if not colon and "=" in url:  # it may have a password, so it is not quoted
        raise ConfigError("expected a URL, got a list of parameters: write 'postgresql://user@host/database'")
    if not colon or len(scheme) == 1:  # a letter is a drive of Windows
        raise ConfigError(f"{url!r} is not a URL: write 'sqlite:///{url or 'file.db'}' for a file")
    return scheme


def _unknown(scheme: str, known: Mapping[str, EntryPoint]) -> ConfigError | MissingDependencyError:
    """Return the error for a scheme that no installed backend serves: the URL to write, or the package to install."""
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
    """Return the function that makes a backend's savers, or raise an error that names the missing package."""
    package = f"threadmark[{_EXTRAS[entry.name]}]" if entry.name in _EXTRAS else "the package that it names"
    with importing(f"the backend for {entry.name!r} URLs cannot be imported ({{missing}}): install {package!r}"):
        made: Callable[..., object] = entry.load()
    return made
