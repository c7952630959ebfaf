"""The `threadmark` command: threads, their history and their states, in a terminal and in scripts."""

__all__: list[str] = []
