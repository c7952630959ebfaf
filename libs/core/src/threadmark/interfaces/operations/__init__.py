"""What the methods of the interfaces do, each a generator of transactions; none holds a driver."""
