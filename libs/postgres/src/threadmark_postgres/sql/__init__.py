"""Every statement of the Postgres backend, one constant each, in modules by what they are for.

* `finding`: one checkpoint with its writes and segments, which is a get
* `listing`: pages and rows of many checkpoints, chains of ancestors, heads
* `judging`, `adding`, `adding_alone`: a put. The first has what each change meets, the second the statements for any
  change, the third the shorter ones for what most changes are.
* `removing`: checkpoints and threads
* `threads`: the rows of threads, their listing and their leases
* `replication`, `fencing`: the tables of replication, and the adding statements for a change that is fenced by a term
* `connections`, `reports`: transactions and the setup of tables; what is asked of a database as a whole
* `expressions`: what statements of several modules have in common

The bodies of the server's functions are in the folder `functions`. `tm.` stands before the name of every table and
function of ours; `schema.in_schema` puts the schema's name there. Names of users (threads, channels, metadata keys) are
always bound, never part of a statement. Every statement names one thread_id, so that it stays inside one partition or
shard, except those that search all threads or that callers share.
"""
