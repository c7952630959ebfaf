"""`open(url)`: the backend is chosen by the URL's scheme.

Backends announce themselves through the entry-point group `threadmark.savers`; an entry's name is its scheme, and
what it points to is called with the URL and the options. A new backend is an install away.
"""

from importlib.metadata import entry_points
from typing import Any

from threadmark.errors import ConfigError
from threadmark.saver import Saver

GROUP = "threadmark.savers"

_PACKAGES = {"postgresql": "postgres"}
"""Schemes that are not the end of their package's name."""


def open(url: str, **options: Any) -> Saver:  # noqa: A001 - read as `threadmark.open`
    """A saver for `memory:`, `sqlite:///relative.db`, `sqlite:////absolute.db`, `postgresql://...` and others.

    The options are those of the backend's saver class, `serde` and `cache_bytes` among them.
    """
    scheme, colon, _ = url.partition(":")
    if not colon:
        raise ConfigError(f"{url!r} is not a URL: write 'sqlite:///{url}' for a file")
    known = {entry.name: entry for entry in entry_points(group=GROUP)}
    if scheme not in known:
        package = _PACKAGES.get(scheme, scheme)
        raise ConfigError(
            f"no backend for {scheme!r} URLs is installed (there are: {', '.join(sorted(known)) or 'none'}); "
            f"install the package that has it, such as threadmark-{package}"
        )
    saver = known[scheme].load()(url, **options)
    if not isinstance(saver, Saver):
        raise ConfigError(f"the backend for {scheme!r} returned a {type(saver).__name__}, not a threadmark.Saver")
    return saver
