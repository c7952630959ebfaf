"""Items of a replicated saver: each put goes to the active database, and from there to the other one.

An item is a register whose last writer wins. A put or a removal has a time that is greater than that of every version
of the item that its database has seen, whatever the clocks say. The entry of a removal stays in the outbox until the
other database has it. So copies may come in any order and twice, and both databases end up with the same.
"""
