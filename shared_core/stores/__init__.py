"""Stored vectors out of vector stores: one module for each store, with functions over the store's own client.

All modules keep one contract. The docstring of a function says only what is particular to its store.

**`search_with_vectors(client, ..., query, k, **arguments) -> (rows, vectors)`** returns the store's own top `k` for a
query, with the vectors stored for them, in one request.

- `query`: a sequence of d floats. `k`: the most hits to return.
- `arguments`: passed to the client's own search unchanged, for example a filter.
- `rows`: the m hits in the store's order, m <= k, as the client returns them, but without the vectors.
- `vectors`: float32, shape (m, d). If a hit has no vector: a list of m rows, with None for that hit.

**`vectors_by_id(client, ..., ids) -> {id: vector}`** returns the vectors that are stored under these ids.

- `ids`: strings. No id sends no request.
- Each vector is float32, shape (d,), under its id as it was given, in the store's order and not in that of `ids`.
- An id that the store does not know is left out, and so is one whose document has no vector. Neither is an error.
- With its other arguments bound it looks vectors up by id alone: `functools.partial(chroma.vectors_by_id, collection)`.

**`list_rows(client, ...)`** returns all rows without their vectors, and **`count_rows(client, ...)`** their number,
where a client can do so and the frameworks' stores have no function for it.

**`narrow_filter(filter, values)`** returns a filter that lets in what `filter` does, as far as it has one of the values
under each key, a list or a range of integers.

`asearch_with_vectors` and `avectors_by_id` are the same for the store's async client.

The numbers are those that were added, bit by bit, unless the store itself scales, rounds or compresses them.

**Errors.** A store that keeps no vectors, does not return them, or keeps several for one document raises a
`VectorSourceError`. The client's own errors are not translated: a query of another length, an unknown collection and a
lost connection reach the caller as the client raises them.

Examples
--------
>>> import chromadb
>>> from shared_core.stores import chroma
>>> collection = chromadb.EphemeralClient().create_collection("contract")
>>> collection.add(ids=["a", "b"], embeddings=[[1.0, 0.0], [0.0, 1.0]], documents=["one", "two"])
>>> rows, vectors = chroma.search_with_vectors(collection, [0.0, 1.0], 1)
>>> rows[0][0], vectors.tolist()
('b', [[0.0, 1.0]])
>>> {name: row.tolist() for name, row in chroma.vectors_by_id(collection, ["a", "gone"]).items()}
{'a': [1.0, 0.0]}
"""

# The most candidates that setselect fetches when it widens a search on its own. A store with a lower limit has a
# WIDEST of its own in its module.
WIDEST = 20_000
