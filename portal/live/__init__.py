"""Live pages: a snapshot on connecting, then what changed, at most once a second."""
