"""The contract between a saver and its backends, and the stores that stand around another store."""
