"""Every statement of the Postgres backend as a constant, in modules by purpose.

* `finding`: one checkpoint with its writes and segments, for a get
* `listing`: pages and rows of many checkpoints, chains of ancestors, heads
* `adding`: a put
* `removing`: checkpoints and threads
* `threads`: the rows of threads, their listing and their leases
* `replication`: the term, the outbox, and how far threads were copied from another database
* `connections`, `reports`: transactions and the setup of tables; questions about a database as a whole
* `expressions`: parts that statements of several modules share

The bodies of the server's functions are in the folder `functions`. `tm.` is before the name of every table and function
of Threadmark; `schema.in_schema` puts the schema's name there. Names of users (threads, channels, metadata keys) are
always bound, never part of a statement. Every statement names one thread_id, so that it stays inside one partition or
shard, except those that search all threads or that callers share.
"""
