from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shared_core import InvalidParameterError
from shared_core.learning import FitSettings


@pytest.mark.parametrize(
    "change",
    [
        {"objective": "paper"}, {"k": 0}, {"fetch_k": 3}, {"rank": 2.5}, {"temperature": np.nan}, {"share": 1.5},
        {"beta": "1"}, {"held_out": 1.5}, {"learn_relevance": 1},
    ],
)  # fmt: skip
def test_a_value_out_of_its_range_is_refused_by_name(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError, match=f"^{next(iter(change))} must"):
        FitSettings(**change)
