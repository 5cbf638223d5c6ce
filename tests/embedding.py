"""Text to vector without a model: hashed words, so that texts which share words are near each other."""

import functools
import hashlib

import numpy as np
from numpy.typing import NDArray

DIMENSION = 48


def embed(text: str) -> NDArray[np.float64]:
    """Sum of a fixed random direction for each word, plus a little of the whole text so that no two texts tie."""
    return sum((_direction(word) for word in text.lower().split()), start=0.05 * _direction(text))


@functools.lru_cache(maxsize=10_000)
def _direction(word: str) -> NDArray[np.float64]:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).standard_normal(DIMENSION)


TOPICS = ("river", "mountain", "bread", "engine", "violin", "harbour")
TRAITS = ("old", "loud", "northern", "red", "hidden")


def corpus(n: int = 60) -> list[tuple[str, dict[str, object]]]:
    """n texts with metadata; many share all but one word, as passages of one source do."""
    rows = []
    for i in range(n):
        topic, trait = TOPICS[i % len(TOPICS)], TRAITS[(i // len(TOPICS)) % len(TRAITS)]
        text = f"{trait} {topic} passage {i}"
        rows.append((text, {"number": i, "topic": topic, "quality": (i * 7 % 10) / 10, "tokens": 5 + i % 4}))
    return rows
