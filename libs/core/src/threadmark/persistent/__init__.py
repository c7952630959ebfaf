"""A dictionary that is kept in a file."""
