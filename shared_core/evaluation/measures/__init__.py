"""The papers' measures of selections, measures of rankings, and statistics over queries."""

from .metrics import mean_pairwise_cosine, sum_cosine
from .ranking import rank_measures
from .statistics import bootstrap_interval, paired_test

__all__ = ["bootstrap_interval", "mean_pairwise_cosine", "paired_test", "rank_measures", "sum_cosine"]
