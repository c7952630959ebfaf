"""From checkpoints to rows: what is new in them, and its stored form."""
