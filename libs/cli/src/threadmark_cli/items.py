"""The items of stores in a database, if threadmark-store is installed, which the command can do without."""

from typing import TYPE_CHECKING

from threadmark import ConfigError, MissingDependencyError, Saver, SaverProtocol
from threadmark.errors import importing
from threadmark_cli.exits import RefusedError
from threadmark_cli.output import Output

if TYPE_CHECKING:
    from threadmark_store.looking import Items

NEEDED = "items of stores need their package: pip install 'threadmark[store]'"
_LANGGRAPHS = "this is LangGraph's own database: `threadmark migrate` copies its items to one of Threadmark's"


def items_in(saver: SaverProtocol) -> "Items":
    """Return the items of a database. Raises an error if the package is missing, or the backend has no items."""
    with importing(NEEDED):
        from threadmark_store.looking import Items
    if not isinstance(saver, Saver):
        raise RefusedError(_LANGGRAPHS)
    return Items(saver)


def items_if_any(saver: SaverProtocol, out: Output) -> "Items | None":
    """Return the items for a command about the whole database, or None. A missing package is noted."""
    if not isinstance(saver, Saver):
        return None
    try:
        return items_in(saver)
    except MissingDependencyError as missing:
        out.note(f"items are left out: {missing}")
    except ConfigError:  # a backend that has no items
        pass
    return None
