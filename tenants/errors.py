"""What services refuse, without a word of HTTP; the API and the pages give it their form."""

from collections.abc import Mapping, Sequence


class DomainError(Exception):
    """Base of refusals; `code` is a short machine word, the text a sentence for people."""

    code = "refused"


class NotAllowedError(DomainError):
    """The actor may see the object but may not do this."""

    code = "not_allowed"


class ConflictError(DomainError):
    """The object is no longer in a state that allows this; somebody else was first."""

    code = "conflict"


class InvalidValueError(DomainError):
    """Values that can't be taken: field -> sentences, each naming value and remedy."""

    code = "invalid"

    def __init__(self, fields: Mapping[str, Sequence[str]]) -> None:
        self.fields = {name: [str(text) for text in texts] for name, texts in fields.items()}
        super().__init__("; ".join(f"{n}: {' '.join(t)}" for n, t in self.fields.items()))

    @classmethod
    def of(cls, field: str, message: str) -> "InvalidValueError":
        """Return the refusal of one field."""
        return cls({field: [message]})
