"""What a model adds to a selection: quality, perspectives, embeddings and language models."""
