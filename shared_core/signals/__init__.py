"""What enters a selection besides vectors: words, references, quality, perspectives, and the models that some come from."""
