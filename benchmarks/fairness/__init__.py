"""Fairness over a synthetic month: `python -m benchmarks.fairness --json`."""
