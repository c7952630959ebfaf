"""The logger of this package."""

from threadmark.backends import Log

log = Log("threadmark.postgres")
