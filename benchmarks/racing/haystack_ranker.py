"""Haystack's diversity ranker on vectors that are given.

The ranker takes texts and embeds them in each call through its public attribute ``model``. Here ``model`` is an object
that returns given tensors, so the timed part is the ranker's MMR with its own bookkeeping.
"""

from __future__ import annotations

import os

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

from typing import Any

import numpy as np
import torch
from haystack import Document  # type: ignore[import-not-found,unused-ignore]
from haystack_integrations.components.rankers.sentence_transformers import SentenceTransformersDiversityRanker  # type: ignore[import-not-found,unused-ignore]

from benchmarks.racing.turns import Run

_QUESTION = "question"


class _GivenVectors:
    def __init__(self, query: np.ndarray, vectors: np.ndarray) -> None:
        self._query, self._vectors = torch.from_numpy(query[None]), torch.from_numpy(vectors)

    def encode(self, texts: list[str], convert_to_tensor: bool) -> torch.Tensor:
        assert convert_to_tensor
        return self._query if texts == [_QUESTION] else self._vectors


def ranker(query: np.ndarray, vectors: np.ndarray, k: int, lambda_mult: float) -> Run:
    """One call of the ranker with its MMR. It returns documents; the ``content`` of each is the row of its vector."""
    ranker: Any = SentenceTransformersDiversityRanker(
        strategy="maximum_margin_relevance", similarity="cosine", lambda_threshold=lambda_mult, top_k=k
    )
    ranker.model = _GivenVectors(query, vectors)
    documents = [Document(id=str(row), content=str(row)) for row in range(len(vectors))]
    return lambda: ranker.run(_QUESTION, documents)["documents"]
