"""The only code that writes the scheduler's tables."""
