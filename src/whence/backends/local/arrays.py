"""The arrays that batches are made of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Lines = NDArray[np.int64]  # two-dimensional: a line is a row or a key
Ids = NDArray[np.int32]  # row numbers
