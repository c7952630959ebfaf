"""The tables of a store in each database: what creates them, and the statements that all of them have."""
