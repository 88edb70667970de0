"""How long a job waits that goes back to the queue."""

BACK_OFF_BASE_S = 30.0
BACK_OFF_MOST_S = 1800.0


def back_off_s(losses: int) -> float:
    """Return the seconds for which a job that has just lost its node may not start.

    Not at all the first time; then each time twice as long, as a job may be what kills its nodes.

    Args:
        losses: nodes that it lost before.

    Source:
        Kueue, requeuing backoff (base 60 s, doubled, limited).
    """
    return min(BACK_OFF_BASE_S * 2.0 ** min(losses, 64), BACK_OFF_MOST_S) if losses else 0.0
