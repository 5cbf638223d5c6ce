"""What an import brings, and what it says where LlamaIndex is missing."""

from __future__ import annotations

import subprocess
import sys

import llamaindex_setselect


def test_importing_brings_no_store_client_and_nothing_of_the_extras() -> None:
    heavy = "faiss chromadb qdrant_client lancedb pymilvus duckdb psycopg pandas scipy ir_measures torch typer"
    code = (
        "import llamaindex_setselect, langchain_setselect, sys; "
        f"found = set({heavy!r}.split()) & set(sys.modules); assert not found, found"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_without_llama_index_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['llama_index'] = None\n"
        "try: import llamaindex_setselect\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert 'pip install "setselect[llamaindex]"' in done.stdout


def test_all_is_what_is_exported() -> None:
    assert llamaindex_setselect.__all__ == [
        "SetSelectExampleSelector",
        "SetSelectIndexRetriever",
        "SetSelectPostprocessor",
        "compare_index",
        "extractor_from_llm",
        "register_vector_source",
    ]
    assert all(hasattr(llamaindex_setselect, name) for name in llamaindex_setselect.__all__)
