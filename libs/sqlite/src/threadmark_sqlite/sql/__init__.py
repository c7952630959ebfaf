"""Every statement of the SQLite backend, one constant each, in modules by what they are for.

* `finding`: one checkpoint with its writes and segments, which is a get
* `listing`: pages and rows of many checkpoints, chains of ancestors, heads
* `adding`: a put, and what a change has to know of its thread
* `removing`: checkpoints, threads, and what is remembered of deleted threads
* `threads`: the rows of threads, their listing and their leases
* `replication`: the term, the outbox, and how far threads have come from another database
* `connections`, `reports`: settings, transactions and the setup of tables; what is asked of a database as a whole
* `expressions`: what statements of several modules have in common

Names of users (threads, channels, metadata keys) are always bound, never part of a statement. No parameter is numbered
(`?1`): up to Python 3.12.3 sqlite3 takes that for a name, and warns.
"""
