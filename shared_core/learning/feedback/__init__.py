"""Feedback: how well a subset of examples helps, by coverage or by a language model."""
