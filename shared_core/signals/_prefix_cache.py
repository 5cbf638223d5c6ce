"""What many prompts begin with, read by a causal language model once and not once for each."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

# Measured on one core with a small Llama, 16 few-shot prompts of some 280 tokens in batches of 8: 64 tokens in front of
# them save nothing, as keys and values are copied for each batch; 256 save a quarter of the time, 768 half of it.
WORTH_SHARING = 128


class Start(NamedTuple):
    """Tokens that prompts begin with, and a model's keys and values for them."""

    ids: list[int]
    cache: Any

    def copies(self, count: int) -> Any:
        """The cache for so many prompts, to go on with; a model writes into what it is given."""
        cache = copy.deepcopy(self.cache)
        cache.batch_repeat_interleave(count)
        return cache


def common_start(rows: Sequence[Sequence[int]]) -> list[int]:
    """The longest list of tokens that every row begins with.

    Examples
    --------
    >>> common_start([[1, 2, 3], [1, 2], [1, 2, 4]])
    [1, 2]
    """
    # What the first and the last in order share, all between them share.
    low, high = min(map(list, rows)), max(map(list, rows))
    same = next((i for i, pair in enumerate(zip(low, high, strict=False)) if pair[0] != pair[1]), len(low))
    return low[:same]


def can_go_on(cache: Any, config: Any) -> bool:
    """Whether going on from a cache of ``transformers`` comes to the same as one pass over the whole.

    It does for plain keys and values. Windows forget the front, states of recurrent layers take in the padding, and
    rotations that depend on the length of the text ("dynamic", "longrope") differ between the part and the whole.

    Examples
    --------
    >>> can_go_on(None, object())
    False
    """
    layers = getattr(cache, "layers", None) or []
    plain = len(layers) > 0 and all(type(layer).__name__ == "DynamicLayer" for layer in layers)
    rotations = str([getattr(config, name, None) for name in ("rope_parameters", "rope_scaling")])
    return plain and "dynamic" not in rotations and "longrope" not in rotations
