"""What the import loads, and its error if LlamaIndex is missing."""

from __future__ import annotations

import subprocess
import sys

import llamaindex_setselect


def test_the_import_loads_no_store_client_and_no_extra() -> None:
    heavy = "faiss chromadb qdrant_client lancedb pymilvus duckdb psycopg pandas scipy ir_measures torch typer"
    heavy += " shared_core.evaluation"
    code = (
        "import llamaindex_setselect, langchain_setselect, sys; "
        f"found = set({heavy!r}.split()) & set(sys.modules); assert not found, found"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_import_without_llama_index_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['llama_index'] = None\n"
        "try: import llamaindex_setselect\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert 'pip install "setselect[llamaindex]"' in done.stdout


def test_all_names_the_exports() -> None:
    assert llamaindex_setselect.__all__ == [
        "SetSelectExampleSelector",
        "SetSelectIndexRetriever",
        "SetSelectPostprocessor",
        "compare_index",
        "extractor_from_llm",
        "register_vector_source",
    ]
    assert all(hasattr(llamaindex_setselect, name) for name in llamaindex_setselect.__all__)
