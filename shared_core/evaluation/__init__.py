"""Comparison of every method on your own corpus; ``compare`` is the place to start reading."""
