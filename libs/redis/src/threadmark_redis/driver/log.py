"""The logger of this package."""

from threadmark.logs import Log

log = Log("threadmark.redis")
