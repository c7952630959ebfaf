"""The vectors of items: the contract of `contract.VectorStore` on each backend, on the saver's own driver."""
