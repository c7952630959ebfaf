"""What operators ask about a database: whether it is sound, how much it holds, what is there."""
