"""What is measured: every selector of setselect, and each peer in the form that suits it best.

The peers' packages are imported where they are called, so that reading the figures needs none of them.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.racing.races import LAMBDA, SEED, UNIT, Batch, Data, Point, Run, batch_data
from shared_core import NDPP, Candidates, Coverage, LinearKernel, LowRankKernel, select, select_many
from shared_core.candidates import Parts
from shared_core.selectors import greedy

SIMILARITY, MMR, VRSD, REFINED = ("setselect " + name for name in ("similarity", "MMR", "VRSD", "VRSD, refined"))
RANK = 64
NDPP_PLAIN = "setselect NDPP, no kernel"
NDPP_ROWS = f"setselect NDPP, LowRankKernel, rank {RANK}"
NDPP_SKEW = f"setselect NDPP, LowRankKernel with skew part, rank {RANK}"
NDPP_LINEAR = f"setselect NDPP, LinearKernel with skew part, rank {RANK}"
WORDS = 20  # of the question
COVERAGE = f"setselect, the default, a question of {WORDS} words"
# The selectors that numba compiles are measured twice.
NUMPY_ALONE = {name: name + ", numpy alone" for name in (MMR, COVERAGE, NDPP_PLAIN)}
PYVERSITY, PYVERSITY_DPP = "pyversity MMR", "pyversity DPP"
LANGCHAIN, LANGCHAIN_LISTS = "LangChain MMR, float32 array", "LangChain MMR, Python lists"
LLAMAINDEX, HAYSTACK = "LlamaIndex MMR", "Haystack MMR"

SETS = (SIMILARITY, MMR, NUMPY_ALONE[MMR], VRSD, REFINED)
# These are compared with pyversity's DPP.
DETERMINANTS = (COVERAGE, NUMPY_ALONE[COVERAGE], NDPP_PLAIN, NUMPY_ALONE[NDPP_PLAIN], NDPP_ROWS, NDPP_SKEW, NDPP_LINEAR)
OURS = (*SETS, *DETERMINANTS)
# The speed of the frameworks does not depend on the lengths of the rows: they take part where the rows have length 1.
FRAMEWORKS = (LANGCHAIN, LANGCHAIN_LISTS, LLAMAINDEX, HAYSTACK)
PEERS = (PYVERSITY, PYVERSITY_DPP, *FRAMEWORKS)
# The largest n of a peer: longer lists only take longer to convert, and Haystack takes half a minute at n = 1,000.
LARGEST = {LANGCHAIN_LISTS: 100, HAYSTACK: 200}


def has_haystack() -> bool:
    """Whether Haystack's ranker is installed (extra ``bench``)."""
    return find_spec("haystack_integrations") is not None


class numpy_alone:
    """Context manager: the selectors run in numpy, as if numba were not installed."""

    def __enter__(self) -> None:
        self._kept = vars(greedy)["compiled_loops"]
        vars(greedy)["compiled_loops"] = lambda: None

    def __exit__(self, *_: object) -> None:
        vars(greedy)["compiled_loops"] = self._kept


def contenders(point: Point, given: Data) -> dict[str, Run]:
    """The contenders at a point, by name."""
    import pyversity

    query, vectors, scores, k = given.query, given.vectors, given.scores, point.k
    rng = np.random.default_rng(SEED)
    skew = rng.standard_normal((RANK, RANK))
    skew -= skew.T
    V, B = rng.standard_normal((2, point.n, RANK))
    rows, skewed = NDPP(LowRankKernel(V)), NDPP(LowRankKernel(V, B, skew))
    maps = rng.standard_normal((2, point.d, RANK)) / point.d**0.5
    linear = NDPP(LinearKernel(maps[0], maps[1], skew))
    # A third of the words stands in a text, on average.
    covered = rng.random((point.n, WORDS)) * (rng.random((point.n, WORDS)) < 1 / 3)
    words = Parts(covered, rng.random(WORDS))
    runs: dict[str, Run] = {
        SIMILARITY: lambda: select(query, vectors, k, "similarity"),
        MMR: lambda: select(query, vectors, k, "mmr", lambda_mult=LAMBDA),
        VRSD: lambda: select(query, vectors, k, "vrsd"),
        REFINED: lambda: select(query, vectors, k, "vrsd", refine=True),
        COVERAGE: lambda: Coverage().select(Candidates(query, vectors, words=words), k),
        NDPP_PLAIN: lambda: select(query, vectors, k, "ndpp"),
        NDPP_ROWS: lambda: select(query, vectors, k, rows),
        NDPP_SKEW: lambda: select(query, vectors, k, skewed),
        NDPP_LINEAR: lambda: select(query, vectors, k, linear),
        PYVERSITY: lambda: pyversity.mmr(vectors, scores, k, diversity=1 - LAMBDA),
        PYVERSITY_DPP: lambda: pyversity.dpp(vectors, scores, k),
    }
    if point.length == UNIT:
        runs |= _of_frameworks(point, given)
    runs = _with_numpy_alone(runs)
    return {name: runs[name] for name in (*OURS, *PEERS) if name in runs}


def batch_contenders(batch: Batch) -> dict[str, Run]:
    """One call of ``select_many`` for all queries of a batch, by name."""
    queries, vectors = batch_data(batch)

    def run(selector: str, **parameters: Any) -> Run:
        return lambda: select_many(queries, vectors, batch.k, selector, **parameters)

    return _with_numpy_alone({MMR: run("mmr", lambda_mult=LAMBDA), NDPP_PLAIN: run("ndpp")})


def _with_numpy_alone(runs: dict[str, Run]) -> dict[str, Run]:
    return runs | {NUMPY_ALONE[name]: _in_numpy(run) for name, run in runs.items() if name in NUMPY_ALONE}


def _in_numpy(run: Run) -> Run:
    def run_in_numpy() -> object:
        with numpy_alone():
            return run()

    return run_in_numpy


def _of_frameworks(point: Point, given: Data) -> dict[str, Run]:
    from langchain_core.vectorstores.utils import maximal_marginal_relevance
    from llama_index.core.indices.query.embedding_utils import get_top_k_mmr_embeddings

    query, vectors, k = given.query, given.vectors, point.k
    # LlamaIndex tests its list for emptiness, which fails for an array of two dimensions.
    rows = list(vectors)
    runs: dict[str, Run] = {
        LANGCHAIN: lambda: maximal_marginal_relevance(query, vectors, LAMBDA, k),  # type: ignore[arg-type]
        LLAMAINDEX: lambda: get_top_k_mmr_embeddings(
            query,  # type: ignore[arg-type]
            rows,
            similarity_top_k=k,
            mmr_threshold=LAMBDA,
        ),
    }
    if point.n <= LARGEST[LANGCHAIN_LISTS]:
        lists = vectors.tolist()
        runs[LANGCHAIN_LISTS] = lambda: maximal_marginal_relevance(query, lists, LAMBDA, k)
    if point.n <= LARGEST[HAYSTACK] and has_haystack():
        runs[HAYSTACK] = _haystack(query, vectors, k)
    return runs


def _haystack(query: np.ndarray, vectors: np.ndarray, k: int) -> Run:
    """Haystack's ranker embeds texts in each call by its attribute ``model``; here that returns given tensors."""
    import torch
    from haystack import Document  # type: ignore[import-not-found,unused-ignore]
    from haystack_integrations.components.rankers import (  # type: ignore[import-not-found,unused-ignore]
        sentence_transformers as rankers,
    )

    class GivenVectors:
        def encode(self, texts: list[str], convert_to_tensor: bool) -> torch.Tensor:
            return torch.from_numpy(query[None] if texts == ["question"] else vectors)

    ranker: Any = rankers.SentenceTransformersDiversityRanker(
        strategy="maximum_margin_relevance", similarity="cosine", lambda_threshold=LAMBDA, top_k=k
    )
    ranker.model = GivenVectors()
    documents = [Document(id=str(row), content=str(row)) for row in range(len(vectors))]
    return lambda: ranker.run("question", documents)["documents"]
