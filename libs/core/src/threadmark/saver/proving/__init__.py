"""Whether rows are what was written, and all of it."""
