"""Statements of the commands themselves. Those of databases of LangGraph's are in `foreign/sql.py`."""

# All reads of a file are of one moment: the first read after this fixes it, and writers do not wait.
BEGIN_READ = "BEGIN DEFERRED"
