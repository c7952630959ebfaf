"""The words of items, for a search by text: the contract of `contract.WordStore` on each backend."""
