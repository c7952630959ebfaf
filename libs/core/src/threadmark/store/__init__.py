"""The contract between a saver and its backends, and the stores that wrap another store.

`contract`, `threads` and `replica` explain it. Authors of backends import its names from `threadmark.backends`.
"""
