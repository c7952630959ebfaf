"""The entries of a cache: the contract of `contract.CachedStore` on each backend, on the saver's own driver."""
