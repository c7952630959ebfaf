"""The operations of a saver, one module for each group: the logic of each method, as a generator without I/O."""
