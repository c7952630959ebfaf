"""The operations of a saver, one module for each group: what a method does, as a generator without I/O."""
