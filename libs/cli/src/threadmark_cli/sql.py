"""Statements of the commands themselves. Those of databases of LangGraph's are in `foreign/sql.py`."""

# What is read of a file is one moment's: the first read after this fixes it, and nobody is kept from writing.
BEGIN_READ = "BEGIN DEFERRED"

READ_ANYTHING = """
SELECT COUNT(*)
FROM sqlite_master
"""
