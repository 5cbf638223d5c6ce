"""The papers' measures of selections, measures of rankings, and statistics over queries."""

from .metrics import mean_pairwise_cosine, sum_cosine
from .ranking import alpha_ndcg, ndcg, recall, subtopic_recall, success
from .statistics import bootstrap_interval, paired_test

__all__ = [
    "alpha_ndcg",
    "bootstrap_interval",
    "mean_pairwise_cosine",
    "ndcg",
    "paired_test",
    "recall",
    "subtopic_recall",
    "success",
    "sum_cosine",
]
