"""Vector readers: for each vector store, functions over its own client that return stored vectors.

Errors of a client are not translated: a lost connection, an unknown collection, ... reach the caller as they are.
"""
