"""Keys and scopes of items as columns of a database, for the tables of what items are found by."""
