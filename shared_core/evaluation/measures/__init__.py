"""The papers' measures of selections, measures of rankings, and statistics over queries."""

from .metrics import mean_pairwise_cosine, sum_cosine
from .ranking import rank_measures
from .statistics import bootstrap_interval, bootstrap_intervals, paired_test, paired_tests

__all__ = [
    "bootstrap_interval",
    "bootstrap_intervals",
    "mean_pairwise_cosine",
    "paired_test",
    "paired_tests",
    "rank_measures",
    "sum_cosine",
]
