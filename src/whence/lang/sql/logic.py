"""What may be asked of a condition that is true, false or unknown."""

from __future__ import annotations

from enum import Enum


class Want(Enum):
    """A formula that holds where the condition is this."""

    TRUE = "true"
    FALSE = "false"
    NOT_TRUE = "not true"
    NOT_FALSE = "not false"

    @property
    def of_negation(self) -> Want:
        """What to ask of x, to know this about NOT x."""
        return _OF_NEGATION[self]

    @property
    def is_positive(self) -> bool:
        """Whether AND asks this of both its sides, and OR of one of them. Otherwise it is the other way round."""
        return self in (Want.TRUE, Want.NOT_FALSE)

    @property
    def takes_unknown(self) -> bool:
        return self in (Want.NOT_TRUE, Want.NOT_FALSE)

    @property
    def known(self) -> Want:
        """The same without unknown."""
        return {Want.NOT_TRUE: Want.FALSE, Want.NOT_FALSE: Want.TRUE}.get(self, self)


_OF_NEGATION = {
    Want.TRUE: Want.FALSE,
    Want.FALSE: Want.TRUE,
    Want.NOT_TRUE: Want.NOT_FALSE,
    Want.NOT_FALSE: Want.NOT_TRUE,
}
