"""Measuring selectors: metrics, statistics, and the comparison of all of them on a corpus (extra ``eval``)."""
