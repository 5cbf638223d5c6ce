"""A missing value means the same in every store, for every key: Chroma never has it, a store in memory may."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import NoneType
from typing import Any
from uuid import uuid4

import pandas as pd
import pytest
from llama_index.core import StorageContext, VectorStoreIndex

from setselect import Coverage, InvalidInputError
from tests.adapters.bindings import QUERY, RETRIEVERS, Row, Subject, _node, falling, numbers, over
from tests.langchain_setselect.conftest import WordEmbeddings
from tests.llamaindex_setselect.nodes_and_indexes import CountingEmbedding
from tests.stores.cases.chroma import client
from tests.stores.harness import needs

# The cosine with the question falls from row to row. Row 4 is a copy of row 0.
PARK = "It flows through Lys Park, nan, NaT and None."
TEXTS = [PARK, "A sea.", "A lake.", "A hill.", PARK, "A wood."]
M = object()  # stands for the missing value in the table
MISSING = [None, float("nan"), " \n", pd.NA]
NEAREST: dict[str, Any] = {"selector": "similarity", "k": 4}
# What the rows have under the key, the settings that read it, and the picks; or the id that the error names.
CASES: list[tuple[list[Any], dict[str, Any], list[int] | str]] = [
    (["a", M, "a", M, "a", "b"], {"source": "key", "max_per_source": 1, **NEAREST}, [0, 1, 3, 5]),
    ([M, M, M, M, 1, M], {"prefer": "key", **NEAREST, "k": 3}, [1, 2, 3]),
    (["x", M, M, "y", M, "x"], {"cover": "key", "selector": Coverage(cover_weight=99), "k": 2}, [0, 3]),
    ([M, M, M, "Lys Park", M, M], {"title": "key", "selector": Coverage(reference_weight=99), "k": 2}, [0, 3]),
    (["doc-5", M, M, M, M, M], {"links": "key", "selector": Coverage(reference_weight=99), "k": 2}, [0, 5]),
    ([1, 1, M, 1, 1, 1], {"costs": "key", "budget": 2, **NEAREST}, "doc-2"),
    ([1, 1, M, 1, 1, 1], {"quality": "key", "selector": "mmr", "k": 2}, "doc-2"),
    ([1, 1, M, 1, 1, 1], {"relevance": "key", "selector": "mmr", "k": 2}, "doc-2"),
]


def only(rows: list[Row], *kinds: type) -> list[Row]:
    """The rows with the values of these kinds in their metadata, as LangChain's filter_complex_metadata leaves them."""
    return [row._replace(metadata={k: v for k, v in row.metadata.items() if isinstance(v, kinds)}) for row in rows]


@contextmanager
def stores(subject: Subject, rows: list[Row], folder: Path) -> Iterator[list[Any]]:
    """The rows in a store in memory, and in Chroma."""
    for package in ("langchain_chroma", "llama_index.vector_stores.chroma"):
        needs(package)
    from langchain_chroma import Chroma
    from llama_index.vector_stores.chroma import ChromaVectorStore

    with client("in memory", folder) as chroma:
        name, cosine = f"c{uuid4().hex}", {"hnsw": {"space": "cosine"}}
        collection = chroma.create_collection(name, configuration=cosine)
        if subject is RETRIEVERS[0]:
            kept = only(rows, str, int, float)
            collection.add(
                [row.id for row in kept],
                [row.vector for row in kept],
                [row.metadata for row in kept],
                [row.text for row in kept],
            )
            yield [subject.open(rows, subject.kinds[0]), Chroma(name, WordEmbeddings(), client=chroma)]
        else:
            # LlamaIndex drops None before it calls Chroma. It writes its nodes as JSON, also those in memory.
            kept = only(rows, str, int, float, NoneType)
            storage = StorageContext.from_defaults(vector_store=ChromaVectorStore(chroma_collection=collection))
            nodes = [_node(row) for row in kept]
            in_chroma = VectorStoreIndex(nodes, embed_model=CountingEmbedding(), storage_context=storage)
            yield [subject.open(kept, subject.kinds[0]), in_chroma]


@over(RETRIEVERS)
@pytest.mark.parametrize("missing", MISSING, ids=repr)
def test_a_missing_value_is_that_of_a_document_without_the_key(subject: Subject, missing: Any, tmp_path: Path) -> None:
    for values, settings, picks in CASES:
        column = [missing if value is M else value for value in values]
        rows = [
            row._replace(metadata={"number": i, "key": value})
            for i, (row, value) in enumerate(zip(falling(TEXTS), column, strict=True))
        ]
        with stores(subject, rows, tmp_path) as both:
            for store in both:
                made = subject.make(store, **settings)
                if isinstance(picks, str):
                    with pytest.raises(InvalidInputError, match=f"{next(iter(settings))}.*{picks}"):
                        subject.run(made)
                else:
                    assert numbers(subject.run(made, query=QUERY)) == picks, (settings, store)
