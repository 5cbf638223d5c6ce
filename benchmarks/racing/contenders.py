"""Who takes part: every selector of setselect, and each peer in the form that suits it best.

The peers' packages are imported where they are called, so that what reads the figures needs none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

from benchmarks.racing.points import LAMBDA, SEED, Data, Point
from shared_core import NDPP, LinearKernel, LowRankKernel, select
from shared_core.selectors import compiled

Run = Callable[[], object]

SIMILARITY, MMR, VRSD, REFINED = ("setselect " + name for name in ("similarity", "MMR", "VRSD", "VRSD, refined"))
# What numba compiles where it is installed, made by numpy's calls all the same.
MMR_NUMPY, VRSD_NUMPY, REFINED_NUMPY = (name + ", without numba" for name in (MMR, VRSD, REFINED))
RANK = 64
NDPP_PLAIN = "setselect NDPP, no kernel"
NDPP_ROWS = f"setselect NDPP, LowRankKernel, rank {RANK}"
NDPP_LINEAR = f"setselect NDPP, LinearKernel, rank {RANK}"
PYVERSITY, PYVERSITY_DPP = "pyversity MMR", "pyversity DPP"
LANGCHAIN, LANGCHAIN_LISTS = "LangChain MMR, float32 array", "LangChain MMR, Python lists"
LLAMAINDEX, HAYSTACK = "LlamaIndex MMR", "Haystack MMR"

SETS = (SIMILARITY, MMR, MMR_NUMPY, VRSD, VRSD_NUMPY, REFINED, REFINED_NUMPY)
KERNELS = (NDPP_PLAIN, NDPP_ROWS, NDPP_LINEAR)
OURS = (*SETS, *KERNELS)
PEERS = (PYVERSITY, PYVERSITY_DPP, LANGCHAIN, LANGCHAIN_LISTS, LLAMAINDEX, HAYSTACK)
# Up to which n, and why no further.
LEFT_OUT = {
    LANGCHAIN_LISTS: (100, "LangChain with lists is shown at two sizes: from there on it only turns lists into arrays"),
    HAYSTACK: (200, "Haystack's ranker takes half a minute a call at n = 1,000 and ten at n = 20,000"),
}


def has_haystack() -> bool:
    """Whether Haystack's ranker is installed (extra ``bench``)."""
    return find_spec("haystack_integrations") is not None


def contenders(point: Point, given: Data) -> dict[str, Run]:
    """What is called, by name. With another λ than the usual one only those whose time may depend on it."""
    import pyversity

    query, vectors, scores, k, weight = given.query, given.vectors, given.scores, point.k, point.lambda_mult
    runs: dict[str, Run] = {
        MMR: lambda: select(query, vectors, k, "mmr", lambda_mult=weight),
        PYVERSITY: lambda: pyversity.mmr(vectors, scores, k, diversity=1 - weight),
    }
    if weight != LAMBDA:
        return _with_numpy(runs)
    rng = np.random.default_rng(SEED)
    skew = rng.standard_normal((RANK, RANK))
    skew -= skew.T
    rows = NDPP(LowRankKernel(rng.standard_normal((point.n, RANK)), rng.standard_normal((point.n, RANK)), skew))
    maps = rng.standard_normal((2, point.d, RANK)) / point.d**0.5
    linear = NDPP(LinearKernel(maps[0], maps[1], skew))
    runs |= {
        SIMILARITY: lambda: select(query, vectors, k, "similarity"),
        VRSD: lambda: select(query, vectors, k, "vrsd"),
        REFINED: lambda: select(query, vectors, k, "vrsd", refine=True),
        NDPP_PLAIN: lambda: select(query, vectors, k, "ndpp"),
        NDPP_ROWS: lambda: select(query, vectors, k, rows),
        NDPP_LINEAR: lambda: select(query, vectors, k, linear),
        PYVERSITY_DPP: lambda: pyversity.dpp(vectors, scores, k),
    }
    runs |= {name: run for name, run in _of_frameworks(point, given).items() if _takes_part(name, point.n)}
    if has_haystack() and _takes_part(HAYSTACK, point.n):
        from benchmarks.racing.haystack_ranker import ranker

        runs[HAYSTACK] = ranker(query, vectors, k, weight)
    return _with_numpy({name: runs[name] for name in (*OURS, *PEERS) if name in runs})


def _with_numpy(runs: dict[str, Run]) -> dict[str, Run]:
    """Where numba is installed, those that it compiles once more without it."""
    if not find_spec("numba"):
        return runs
    twice = ((MMR, MMR_NUMPY), (VRSD, VRSD_NUMPY), (REFINED, REFINED_NUMPY))
    runs |= {plain: _by_numpy(runs[name]) for name, plain in twice if name in runs}
    return runs


def _by_numpy(run: Run) -> Run:
    loops = compiled._loops

    def plain() -> object:
        # There is no setting for it: what is installed decides. This takes a tenth of a microsecond.
        compiled._loops = _none  # type: ignore[assignment]
        try:
            return run()
        finally:
            compiled._loops = loops

    return plain


def _none() -> None:
    return None


def _of_frameworks(point: Point, given: Data) -> dict[str, Run]:
    from langchain_core.vectorstores.utils import maximal_marginal_relevance
    from llama_index.core.indices.query.embedding_utils import get_top_k_mmr_embeddings

    query, vectors, k, weight = given.query, given.vectors, point.k, point.lambda_mult
    lists = vectors.tolist() if _takes_part(LANGCHAIN_LISTS, point.n) else []
    # It asks a list of its own whether it is empty, which an array of two dimensions cannot tell.
    rows = list(vectors)
    return {
        LANGCHAIN: lambda: maximal_marginal_relevance(query, vectors, weight, k),  # type: ignore[arg-type]
        LANGCHAIN_LISTS: lambda: maximal_marginal_relevance(query, lists, weight, k),
        LLAMAINDEX: lambda: get_top_k_mmr_embeddings(
            query,  # type: ignore[arg-type]
            rows,
            similarity_top_k=k,
            mmr_threshold=weight,
        ),
    }


def _takes_part(name: str, n: int) -> bool:
    return name not in LEFT_OUT or n <= LEFT_OUT[name][0]
