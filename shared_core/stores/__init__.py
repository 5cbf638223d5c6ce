"""Vector readers: for each vector store, functions over its own client that return stored vectors."""
