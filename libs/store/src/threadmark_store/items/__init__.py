"""The items of each backend: the contract of `contract.ItemStore`, on the saver's own driver."""
