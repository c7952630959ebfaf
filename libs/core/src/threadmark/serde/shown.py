"""Objects as they are shown where their classes are not there: by name and fields."""

from typing import Any, NamedTuple


class Shown(NamedTuple):
    """An object of which only the stored form was read. No code of its class was run, and none was imported."""

    name: str
    """Of its class, with the module: `app.state:Plan`."""
    fields: dict[str, Any]
    """What was stored of it, by name; what has no names is numbered: "0", "1" ..."""
