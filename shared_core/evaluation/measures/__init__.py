"""Measures of a selection and of a ranking, and the statistics of their differences."""
