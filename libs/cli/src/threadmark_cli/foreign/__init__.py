"""LangGraph's own SQLite and Postgres databases, read like ours, before anybody has moved them.

No row is ever trusted: nothing that one names is imported or called. The database is opened read-only.
"""

from threadmark_cli.foreign.opening import foreign_saver

__all__ = ["foreign_saver"]
