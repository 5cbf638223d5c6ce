"""The numpy core of setselect: it selects the best set of k candidates. docs/choosing.md says which method to use when.

To read it, start with selection/route.py, the way of every selection, and candidates/. Then follow selectors/: vrsd.py,
mmr.py, ndpp.py and coverage.py (the default), each with one algorithm. texts/ reads words and references, and
perspective.py projects queries.

Docstrings cite these papers by short names:

- VRSD paper: *Vector Retrieval with Similarity and Diversity: How Hard Is It?* (arXiv 2407.04573). The numbers of its
  sections and definitions are those of an earlier version, *VRSD: Rethinking Similarity and Diversity for Retrieval in
  Large Language Models*.
- RAGSys: *RAGSys: Item-Cold-Start Recommender as RAG System*.
- NDPP paper: *Correlation-Aware Example Selection for In-Context Learning with Nonsymmetric Determinantal Point
  Processes*.
- PIR paper: *Beyond Relevance: Evaluate and Improve Retrievers on Perspective Awareness* (arXiv 2405.02714).
"""

from .batch.select_many import select_many, select_stream
from .candidates import REFERENCE_KINDS, Candidates, Parts, References
from .errors import (
    BudgetError,
    EmbeddingFallbackWarning,
    InvalidInputError,
    InvalidParameterError,
    KernelError,
    NothingLeftError,
    PerspectiveError,
    SetSelectError,
    SetSelectWarning,
    VectorSourceError,
)
from .perspective import PAP
from .scaling import SCALES, rescale
from .selection.select import select
from .selectors.coverage import Coverage
from .selectors.greedy import select_greedily
from .selectors.kernels import Kernel, LinearKernel, LowRankKernel
from .selectors.mmr import MMR
from .selectors.ndpp import NDPP
from .selectors.registry import (
    Capabilities,
    Selector,
    make_selector,
    register_selector,
    selector_names,
    selector_parameters,
)
from .selectors.selection import Selection, Selections, make_selection
from .selectors.top_k import TopK
from .selectors.vrsd import VRSD
from .signals.extraction import PERSPECTIVE_PROMPT, PerspectiveExtractor, QueryParts
from .signals.language_models import LanguageModel
from .signals.perplexity import LogPerplexityQuality
from .texts.names import read_name
from .texts.texts import find_references
from .texts.words import match_words

__all__ = [
    "MMR",
    "NDPP",
    "PAP",
    "PERSPECTIVE_PROMPT",
    "REFERENCE_KINDS",
    "SCALES",
    "VRSD",
    "BudgetError",
    "Candidates",
    "Capabilities",
    "Coverage",
    "EmbeddingFallbackWarning",
    "InvalidInputError",
    "InvalidParameterError",
    "Kernel",
    "KernelError",
    "LanguageModel",
    "LinearKernel",
    "LogPerplexityQuality",
    "LowRankKernel",
    "NothingLeftError",
    "Parts",
    "PerspectiveError",
    "PerspectiveExtractor",
    "QueryParts",
    "References",
    "Selection",
    "Selections",
    "Selector",
    "SetSelectError",
    "SetSelectWarning",
    "TopK",
    "VectorSourceError",
    "find_references",
    "make_selection",
    "make_selector",
    "match_words",
    "read_name",
    "register_selector",
    "rescale",
    "select",
    "select_greedily",
    "select_many",
    "select_stream",
    "selector_names",
    "selector_parameters",
]
