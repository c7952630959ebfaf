"""The logger of this package."""

from threadmark.runtime.logs import Log

log = Log("threadmark.langgraph")
