"""What a backend keeps for replication: a term, an outbox, and how far copies have come."""
