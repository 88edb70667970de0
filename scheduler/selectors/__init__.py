"""The reads of the scheduler's tables, each scoped by who looks."""
