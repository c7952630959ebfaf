"""Keys and scopes of items as columns of a database, and the existence of tables, for the tables of the store."""
