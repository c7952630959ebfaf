"""The parts that wrapping savers share: pairs of databases, and savers in front of a cache."""
