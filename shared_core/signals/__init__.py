"""What enters a selection besides vectors: quality, perspectives, and the models that they come from."""
