"""Values as small numbers, for arrays that are addressed by them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whence.backends.local.arrays import Ids
from whence.backends.local.words import Words

_WIDE = 1 << 31


def are_wide(words: Words) -> bool:
    """Whether one of them takes more than 32 bits."""
    return bool(len(words) and (words.min() < -_WIDE or words.max() >= _WIDE))


class Values:
    """Words in order, each once, and the place of each."""

    def __init__(self, words: Words) -> None:
        self.low = int(words.min()) if len(words) else 0
        spread = int(words.max()) - self.low + 1 if len(words) else 0
        self.places: NDArray[np.int32] | None = None
        if spread <= 8 * len(words) + 1024:
            there = np.zeros(spread, dtype=np.bool_)
            there[words - self.low] = True
            self.words: Words = np.flatnonzero(there) + self.low
            self.places = np.cumsum(there, dtype=np.int32) - np.int32(1)
        else:
            self.words = np.unique(words)

    def find(self, words: Words) -> Ids:
        """The places of words that are among these."""
        if self.places is not None:
            return self.places[words - self.low]
        return np.searchsorted(self.words, words).astype(np.int32)
