"""The logger of this package, `threadmark.store`."""

from threadmark.runtime.logs import Log

log = Log("threadmark.store")
