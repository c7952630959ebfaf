"""The operations of the interfaces, each a generator of transactions; none holds a driver."""
