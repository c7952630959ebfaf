"""Keys and scopes of items as columns of a database, for the tables of vectors and words."""
