"""Writes vectors.npz: the vectors of the texts and questions, in the order of their files. README.md says why."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from setselect import load_model

HERE = Path(__file__).parent
FILES = ["clean", "questions", "html2text", "markdownify", "docling", "pymupdf4llm", "pymupdf4llm_without_layout"]


def main() -> None:
    model, vectors = load_model(), {}
    for name in FILES:
        rows = map(json.loads, (HERE / f"{name}.jsonl").read_text(encoding="utf-8").splitlines())
        texts = [row.get("text") or row["question"] for row in rows if "converter" not in row]
        unrounded = model.embed_documents(texts)
        vectors[name] = np.round(127 * unrounded / np.abs(unrounded).max(axis=1, keepdims=True)).astype(np.int8)
    np.savez_compressed(HERE / "vectors.npz", **vectors)


if __name__ == "__main__":
    main()
