"""Subsets of examples with the feedback that they got."""
