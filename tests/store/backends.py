"""The backends that the suite for stores runs on. Another one plugs in by its line in `BACKENDS`."""

from backends import memory, sealed, sqlite_file, sqlite_memory
from threadmark_conformance import Backend

BACKENDS: dict[str, Backend] = {
    "memory": memory,
    "memory sealed": sealed,
    "sqlite file": sqlite_file,
    "sqlite memory": sqlite_memory,
}
