"""Shared by the examples: 200 questions of HotpotQA dev, most of them of two steps, and a store of their paragraphs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from _minilm import Docs, faiss_store, minilm

if TYPE_CHECKING:
    from langchain_community.vectorstores import FAISS

DATA = Path(os.environ.get("SETSELECT_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
FOLDER = DATA / "hotpotqa_dev"
MISSING = "" if FOLDER.is_dir() else f"skipped: no hotpotqa_dev under {DATA}; set SETSELECT_DATA"


def hotpotqa() -> tuple[FAISS, list[dict[str, Any]]]:
    """The store, whose documents have their ids and titles, and the questions with the ids of their gold documents."""
    passages, questions = list(_records("passages.jsonl")), list(_records("questions.jsonl"))
    texts = [" ".join(passage["sentences"]) for passage in passages]
    vectors = np.array(minilm().embed_documents(texts))
    minilm().embed_documents([question["question"] for question in questions])  # all at once, into the cache
    titles = [{"title": passage["title"]} for passage in passages]
    return faiss_store(Docs([str(passage["id"]) for passage in passages], texts, vectors), titles), questions


def _records(name: str) -> Iterator[dict[str, Any]]:
    with (FOLDER / name).open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)
