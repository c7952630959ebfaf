"""Every statement of the SQLite backend as a constant, in modules by purpose.

* `finding`: one checkpoint with its writes and segments, for a get
* `listing`: pages and rows of many checkpoints, chains of ancestors, heads
* `adding`: a put, and the state of its thread
* `removing`: checkpoints, threads, and the memory of deleted threads
* `threads`: the rows of threads, their listing and their leases
* `replication`: the term, the outbox, and how far threads were copied from another database
* `connections`, `reports`: settings, transactions and the setup of tables; questions about a database as a whole
* `expressions`: parts that statements of several modules share

Names of users (threads, channels, metadata keys) are always bound, never part of a statement. No parameter is numbered
(`?1`): up to Python 3.12.3 sqlite3 takes that for a name, and warns.
"""
