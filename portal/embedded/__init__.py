"""The default stack in one process tree: PostgreSQL, Valkey, web, worker and beat."""
