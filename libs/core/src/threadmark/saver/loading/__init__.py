"""From rows to checkpoints: which bytes are needed, and what they decode to."""
