"""Shared by the examples: questions of several steps, of HotpotQA dev and of 2WikiMultihopQA, with their paragraphs."""

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
HOTPOTQA, WIKI = "hotpotqa_dev", "2wiki"


def what_is_missing(name: str) -> str:
    """Why the data set cannot be read; empty if it can."""
    return "" if (DATA / name).is_dir() else f"skipped: no {name} under {DATA}; set SETSELECT_DATA"


MISSING = what_is_missing(HOTPOTQA)


def read_set(name: str) -> tuple[FAISS, list[dict[str, Any]]]:
    """The store, whose documents have their ids and titles, and the questions with the ids of their gold documents."""
    passages, questions = list(read_records(name, "passages.jsonl")), list(read_records(name, "questions.jsonl"))
    texts = [" ".join(passage["sentences"]) for passage in passages]
    vectors = np.array(minilm().embed_documents(texts))
    minilm().embed_documents([question["question"] for question in questions])  # all at once, into the cache
    titles = [{"title": passage["title"]} for passage in passages]
    return faiss_store(Docs([str(passage["id"]) for passage in passages], texts, vectors), titles), questions


def hotpotqa() -> tuple[FAISS, list[dict[str, Any]]]:
    """200 questions of HotpotQA dev, most of them of two steps."""
    return read_set(HOTPOTQA)


def read_records(name: str, file: str) -> Iterator[dict[str, Any]]:
    """The lines of a file of the data set."""
    with (DATA / name / file).open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)
