"""A vector store in place of files: ``setselect compare --store kind:place``."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console

from ..errors import InvalidParameterError
from ..evaluation.corpus import Query
from ..evaluation.results import Comparison, Diagnosis
from ..signals.embedding_models import CachedEmbedding
from ._terminal import show_progress
from ._vectors import VectorOptions


class Store:
    """The store that ``--store`` names, opened with LangChain's class for it."""

    def __init__(self, given: str, collection: str | None) -> None:
        if find_spec("langchain_core") is None:
            raise ImportError("--store opens a store with LangChain's class for it: pip install langchain-core")
        # As in _vectors.py: the adapter's name, which import-linter cannot see.
        self._opening = import_module("langchain_setselect.opening")
        self._compare = import_module("langchain_setselect.compare")
        self.opened = self._opening.open_store(given, collection)
        self.title = f"{given.partition(':')[0]}, {self.opened.collection}"

    def close(self) -> None:
        """Close what was opened."""
        self.opened.close()

    def diagnose(self, say: Console, k: int, fetch_k: int | None) -> Diagnosis:
        """What the store gives the settings to act on."""
        found: Diagnosis = self._compare.diagnose_store(
            self.opened.store,
            dimension=self.opened.dimension,
            documents=self.opened.texts,
            k=k,
            fetch_k=fetch_k,
            title=self.title,
            track=show_progress(say),
        )
        return found

    def compare(
        self, say: Console, queries: list[Query], source: VectorOptions, cache: Path | None, **options: Any
    ) -> Comparison:
        """Compare on the store, with questions that the model of the options embeds, or the store's own function."""
        opened = self.opened
        if source.model is None and source.embedding is None:
            if opened.embeddings is None:
                raise InvalidParameterError(
                    "the store keeps no embedding function: name the model that filled it by --model or --embedding"
                )
            embeddings, name = opened.embeddings, "the store's own embedding function"
        else:
            loaded, name = source.load(say), source.name
            kept = CachedEmbedding(loaded.embed_queries, f"{loaded.fingerprint} query", cache)
            embeddings = self._opening.ModelEmbedding(loaded.embed_documents, kept)
        self._opening.check_model(opened, embeddings, name)
        found: Comparison = self._compare.compare_store(
            opened.store,
            queries,
            embeddings=embeddings,
            model=name,
            documents=opened.texts,
            title=self.title,
            track=show_progress(say),
            **options,
        )
        return found
