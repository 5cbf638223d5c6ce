"""The methods and settings of a comparison as the report names them."""

from __future__ import annotations

from ...selection.route import DEFAULT_EXTRA_K
from ..results import Comparison, Setting
from ..search import HYBRID_SEARCH

# For readers who have not met the methods.
METHODS = {
    "similarity": "The texts that are nearest to the query.",
    "coverage": "A set of texts that are relevant, cover the words of the query together, and do not repeat each "
    "other. A text that an earlier pick names, links to or cites, or that stands next to it, gets a bonus.",
    "coverage with keyword search": f"What coverage selects if the {DEFAULT_EXTRA_K} best texts of a search by words "
    "(BM25) over all documents are candidates too. It needs an index of the words.",
    "ndpp": "A set of texts that are relevant and do not repeat each other.",
    "vrsd": "Texts whose sum points in the direction of the query.",
    "mmr": "Text by text: relevant, and not similar to those before it. A lower lambda_mult weighs repetition more.",
    HYBRID_SEARCH: "Two searches over all documents, one by the words (BM25) and one by the vectors. Reciprocal rank "
    "fusion joins their rankings. It is another search, which needs an index of the words, and selects nothing: there "
    "are no lines of code to paste.",
    "reranker": "The texts with the highest scores of your reranker.",
    "rrf": "The ranks of a text for the sub-questions, added up.",
    "highest cosine": "The texts that are nearest to the query or to one of its sub-questions.",
}


def clip_middle(text: str, limit: int) -> str:
    """``text`` in at most ``limit`` characters, with an ellipsis in place of the middle: long ids differ at the ends.

    >>> clip_middle("corpus/2024/part-000017.json#41", 13)
    'corpus…son#41'
    """
    head = limit // 2
    return text if len(text) <= limit else f"{text[:head]}…{text[len(text) - (limit - head - 1) :]}"


def method_of(setting: Setting) -> str:
    """The name of the method. Each ranking, such as hybrid search, is a method of its own, and so is keyword search."""
    name = setting.label if setting.method == "ranking" else setting.method
    return f"{name} with keyword search" if setting.keyword_search else name


def by_method(comparison: Comparison) -> dict[str, list[int]]:
    """For each method the positions of its settings, methods in the order of their first setting."""
    methods: dict[str, list[int]] = {}
    for position, setting in enumerate(comparison.settings):
        methods.setdefault(method_of(setting), []).append(position)
    return methods
