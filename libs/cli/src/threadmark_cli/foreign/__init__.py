"""LangGraph's own SQLite and Postgres databases, read like ours, before anybody has moved them.

No row is ever trusted: nothing that one names is imported or called. The database is opened read-only. `opening` finds
out whether there is one; the modules that read it are imported only then.
"""
