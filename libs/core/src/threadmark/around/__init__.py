"""What savers around other savers share: those of a pair of databases, and those in front of a cache."""
