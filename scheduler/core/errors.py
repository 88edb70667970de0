"""What the engine raises. Each says what was wrong with which value."""


class EngineError(Exception):
    """Base of all errors of the pure engine."""


class InvalidSnapshotError(EngineError):
    """The snapshot contradicts itself (shapes disagree, a negative amount, a tree with a cycle)."""


class InvalidPolicyError(EngineError):
    """The policy names a strategy or a score that does not exist, or a weight that is no weight."""


class InvalidPlanError(EngineError):
    """A plan breaks an invariant; the verifier names it."""


def require(condition: bool, message: str) -> None:
    """Raise InvalidPlanError with the message unless the condition holds."""
    if not condition:
        raise InvalidPlanError(message)
