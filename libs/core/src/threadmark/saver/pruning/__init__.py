"""What a removal must spare: checkpoints that others are read from, and calls that go on."""
