"""Looking at a thread's past and going back to it. Each module is one group of operations."""
