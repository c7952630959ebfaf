"""Encryption at rest: a store that seals what another one keeps. The keyring itself is in `threadmark.sealing`."""
