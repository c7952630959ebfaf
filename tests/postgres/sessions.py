"""Statements about the sessions that savers have in a test's database."""

_OURS = "FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'threadmark'"
SESSIONS = f"SELECT count(*) {_OURS}"
OPEN = f"{SESSIONS} AND state <> 'idle'"
"""How many have begun a transaction."""
HELD_UP = f"{SESSIONS} AND wait_event_type = 'Lock'"
END_SESSIONS = f"SELECT pg_terminate_backend(pid) {_OURS}"
