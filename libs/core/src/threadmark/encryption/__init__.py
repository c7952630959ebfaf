"""Encryption at rest: a store that seals the rows of another one. The keyring itself is in `threadmark.sealing`."""
