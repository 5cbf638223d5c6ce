"""What says how good a subset of examples is: coverage, or a language model."""
