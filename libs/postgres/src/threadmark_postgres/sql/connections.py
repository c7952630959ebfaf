"""Statements that do not depend on a program: the limits of transactions, and the setup of the tables."""

from threadmark_postgres.sql.expressions import MICROSECONDS, STARTED

# A reading transaction of several statements sees one state of the database. A writing one sees, after it has waited
# for a lock, the changes of the lock's last holder.
BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
BEGIN_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
COMMIT = "COMMIT"
ROLLBACK = "ROLLBACK"

# The number of a transaction, with the starts of the server and of the transaction, and what became of it: "committed",
# "aborted" or "in progress". It is NULL if that cannot be known: another server, or this one after a crash, may have
# given the number to another transaction, as the first one may have left nothing in the log. A crash of the server may
# leave its first process alive, but never its statistics.
NUMBER = f"SELECT pg_current_xact_id()::text, {STARTED}, {MICROSECONDS.format('now()')}"
STATUS = f"""
SELECT CASE
    WHEN {STARTED} = $2::bigint
        AND {MICROSECONDS.format("pg_stat_get_bgwriter_stat_reset_time()")} < $3::bigint
    THEN pg_xact_status($1::text::xid8)
END
"""

# A part of a transaction, which can be undone by itself.
SAVEPOINT = "SAVEPOINT threadmark"
ROLLBACK_TO = "ROLLBACK TO SAVEPOINT threadmark"
RELEASE = "RELEASE SAVEPOINT threadmark"

# psycopg begins your transaction before a statement that it sends itself.
NOTHING = "SELECT"
ISOLATION = "SELECT current_setting('transaction_isolation')"

# The position of a primary's log on its disk, or up to which a standby has replayed it, in bytes, and the timeline of
# the log. Each standby that takes over begins one, and positions of two timelines tell nothing about each other. A
# standby tells the timeline that it last noted in its own files, for some minutes perhaps the one before, and the one
# that it receives only to roles with pg_read_all_stats.
POSITION = """
SELECT in_recovery, pg_wal_lsn_diff(
    CASE WHEN in_recovery THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END, '0/0'
)::bigint, CASE
    WHEN in_recovery THEN (
        SELECT greatest(timeline_id, min_recovery_end_timeline, (SELECT received_tli FROM pg_stat_wal_receiver))
        FROM pg_control_checkpoint(), pg_control_recovery()
    )
    ELSE ('x' || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8))::bit(32)::integer
END
FROM pg_is_in_recovery() AS in_recovery
"""
IS_STANDBY = "SELECT pg_is_in_recovery(), NULL::bigint, NULL::integer"

# Keeps other processes from setting up the tables until the transaction ends.
LOCK_SETUP = "SELECT pg_advisory_xact_lock(6074030921331797345)"

# When the server started, and of our tables, if they are there: their schema, whether the table has our columns, the
# names of the functions in the schema, and the table that a function names, if it is in another one. This reads the
# tables of the catalogue, because after a wait for the lock above the server's look-up functions may still answer from
# their cache.
FIND_TABLES = f"""
SELECT {STARTED}, found.*
FROM (SELECT) AS always
LEFT JOIN (
    SELECT
        n.nspname::text,
        (
            SELECT count(*) = 4
            FROM pg_catalog.pg_attribute AS a
            WHERE a.attrelid = c.oid AND a.attname IN ('number', 'distribute', 'least_reader', 'least_writer')
        ),
        ARRAY(
            SELECT p.proname::text
            FROM pg_catalog.pg_proc AS p
            WHERE p.pronamespace = n.oid AND p.proname LIKE 'threadmark%'
        ),
        (
            SELECT named.place
            FROM pg_catalog.pg_proc AS p
            CROSS JOIN LATERAL substring(p.prosrc FROM 'FROM (.*threadmark_position) AS') AS named (place)
            WHERE p.pronamespace = n.oid AND p.proname = 'threadmark_position_1'
                AND CASE
                    WHEN cardinality(parse_ident(named.place)) > 1 THEN (parse_ident(named.place))[1] <> n.nspname
                    ELSE pg_catalog.to_regclass(named.place)
                        IS DISTINCT FROM pg_catalog.to_regclass(format('%I.threadmark_position', n.nspname))
                END
            LIMIT 1
        )
    FROM pg_catalog.pg_class AS c
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.relname = 'threadmark_migration'
        AND CASE WHEN $1::text IS NULL THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname = $1::text END
) AS found ON true
"""

HAS_SCHEMA = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1::text)"

HAS_CITUS = "SELECT FROM pg_extension WHERE extname = 'citus'"

# A table that others use is locked for a moment only, or not at all: the transaction is tried again.
SHORT_WAIT = "SET LOCAL lock_timeout = '200ms'"

# Waits for every transaction that has begun to write, in the order in which those take their locks.
LOCK_WRITING = "LOCK TABLE tm.replica, tm.outbox, tm.thread, tm.copied IN EXCLUSIVE MODE"

RECORDED_FORMAT = """
SELECT coalesce(max(number), 0), coalesce(max(least_reader), 0), coalesce(max(least_writer), 0), max(distribute)
FROM tm.migration
"""

RECORD_MIGRATION = """
INSERT INTO tm.migration (number, name, distribute, least_reader, least_writer, applied_at)
VALUES ($1::bigint, $2::text, $3::text, $4::bigint, $5::bigint, now())
"""
PRESENT_READER = "(SELECT max(least_reader) FROM tm.migration)"
PRESENT_WRITER = "(SELECT max(least_writer) FROM tm.migration)"

RECORD_SWITCH = """
UPDATE tm.migration
SET least_reader = $2::bigint, least_writer = $3::bigint
WHERE number = $1::bigint
"""
