"""What an import brings, and what it says where LlamaIndex is missing."""

from __future__ import annotations

import subprocess
import sys

import llamaindex_setselect


def test_importing_brings_no_store_client() -> None:
    code = (
        "import llamaindex_setselect, sys; "
        "assert not {'faiss', 'llama_index.vector_stores.faiss'} & set(sys.modules), 'imported'"
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
        "extractor_from_llm",
        "register_vector_source",
    ]
    assert all(hasattr(llamaindex_setselect, name) for name in llamaindex_setselect.__all__)
