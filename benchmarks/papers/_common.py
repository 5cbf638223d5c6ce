"""Shared by the papers' tables: data, embeddings cached in .cache/, Markdown tables and page headings."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]

DATA = Path(os.environ.get("SETSELECT_DATA", ROOT.parent / "shared" / "data"))
RESULTS = ROOT / "benchmarks" / "results" / "papers"
CACHE = ROOT / ".cache" / "papers"
MINILM = "all-MiniLM-L6-v2"
BATCH = 64
# The last digits of a model's vectors depend on the processor, and the picks among almost equal candidates on these.
REPEATED = (
    "A second run on the same kind of processor gives the same figures. Other kinds round differently, which moves "
    "some of them a little."
)


def require(*files: str) -> None:
    """Unless every file is there, say what is missing and end the script with exit code 0."""
    missing = [name for name in files if not (DATA / name).is_file()]
    if missing:
        print(f"skipped: no {', '.join(missing)} under {DATA}; set SETSELECT_DATA")
        sys.exit(0)


def records(name: str) -> list[dict[str, Any]]:
    """The records of a JSON-lines file under ``DATA``, in order."""
    with (DATA / name).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def embedded(texts: Sequence[str], model: str = MINILM) -> np.ndarray:
    """Unit vectors, float32, row i for text i; cached in .cache/ under the texts and the model.

    ``model`` is all-MiniLM-L6-v2 (from a package, without a network) or any model of sentence-transformers.
    """
    distinct = list(dict.fromkeys(texts))
    key = hashlib.sha256("\0".join([_identity(model), *distinct]).encode()).hexdigest()[:20]
    kept = CACHE / f"{key}.npy"
    vectors = None
    with suppress(OSError, ValueError):
        vectors = np.load(kept, allow_pickle=False)
    if vectors is None or len(vectors) != len(distinct):
        vectors = _embed(distinct, model)
        CACHE.mkdir(parents=True, exist_ok=True)
        # Two simultaneous first runs must not read each other's half-written files.
        written = kept.with_suffix(f".{os.getpid()}.tmp")
        with written.open("wb") as file:
            np.save(file, vectors)
        written.replace(kept)
    row = {text: i for i, text in enumerate(distinct)}
    return vectors[[row[text] for text in texts]]


def _embed(texts: list[str], model: str) -> np.ndarray:
    encoder = _encoder(model)
    # Texts of similar length share a batch, since each batch is padded to its longest text.
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    rows = encoder.encode([texts[i] for i in order], batch_size=BATCH, normalize_embeddings=True)
    vectors = np.empty((len(texts), rows.shape[1]), dtype=np.float32)
    vectors[order] = rows
    return vectors


@cache
def _encoder(model: str) -> Any:
    if model == MINILM:
        from _minilm import load_minilm

        return load_minilm().model
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(model, device="cpu")


@cache
def _identity(model: str) -> str:
    if model == MINILM:
        from _minilm import WEIGHTS_SHA256

        return WEIGHTS_SHA256
    return model


def bm25_scores(items: Sequence[str], queries: Sequence[str]) -> list[np.ndarray]:
    """BM25 of every item for each query (bm25s' defaults: Lucene's variant, English stop words, no stemming)."""
    import bm25s

    index = bm25s.BM25()
    index.index(bm25s.tokenize(list(items), show_progress=False), show_progress=False)
    tokens = bm25s.tokenize(list(queries), return_ids=False, show_progress=False)
    known = [[word for word in words if word in index.vocab_dict] for words in tokens]
    return [index.get_scores(words).astype(np.float64) if words else np.zeros(len(items)) for words in known]


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill, which becomes ``folder`` at the end unless a simultaneous run has made it."""
    unfinished = folder.with_name(f"{folder.name}.{os.getpid()}.tmp")
    unfinished.mkdir(parents=True)
    try:
        yield unfinished
        if not folder.exists():
            unfinished.replace(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def heading(
    title: str, script: str, files: Iterable[str], packages: Iterable[str], seed: int | str | None = None
) -> str:
    """Title, the script that wrote the page, versions, seed and the sha256 of each data file."""
    versions = ", ".join([f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in packages)])
    lines = [f"# {title}", "", f"Written by `{script} --write`. {REPEATED}", ""]
    lines += [f"- Versions: {versions}", f"- Seed: {'none needed' if seed is None else seed}"]
    lines += [f"- Data: `{name}`, sha256 `{_sha256(DATA / name)}`" for name in files]
    return "\n".join(lines) + "\n"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; all columns but the first are aligned to the right."""
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def write(name: str, text: str) -> Path:
    """Write benchmarks/results/papers/``name``."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / name
    path.write_text(text, encoding="utf-8")
    return path
