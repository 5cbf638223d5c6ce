"""Fits where nothing can be learned: how often ``fit`` reports a gain all the same."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shared_core import SetSelectWarning
from shared_core.learning import fit

FITS, ITEMS, DIMENSIONS, EPOCHS = 100, 60, 64, 15


def affinity(query: Mapping[str, Any], subset: Sequence[Mapping[str, Any]]) -> float:
    """A random number for each pair of items, the same in both directions: no pair tells anything about another."""
    pairs = ["".join(sorted((query["question"], item["question"]))) for item in subset]
    return float(np.mean([int.from_bytes(hashlib.sha256(pair.encode()).digest()[:4], "big") / 2**32 for pair in pairs]))


def fits_to_nothing() -> list[tuple[float, float]]:
    """The gain that each fit reports, with its standard error; the vectors are random."""
    found = []
    for seed in range(FITS):
        items = [{"question": f"{seed} {row}", "answer": f"{row}"} for row in range(ITEMS)]
        vectors = np.random.default_rng(seed).normal(size=(ITEMS, DIMENSIONS))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SetSelectWarning)
            fitted = fit(
                items, vectors, affinity, k=2, fetch_k=ITEMS, epochs=EPOCHS, skew_rank=0, learning_rate=0.01, seed=seed
            )
        found.append((fitted.gain, fitted.standard_error))
    return found
