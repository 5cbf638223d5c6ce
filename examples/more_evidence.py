"""LangChain: for how many questions of HotpotQA do 5 texts hold all the evidence, with setselect and without?"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _minilm import Docs, faiss_store, minilm
from langchain_core.retrievers import BaseRetriever

from langchain_setselect import SetSelectRetriever

DATA = Path(os.environ.get("SETSELECT_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
FOLDER = DATA / "hotpotqa_dev"
if not FOLDER.is_dir():
    print(f"skipped: no hotpotqa_dev under {DATA}; set SETSELECT_DATA")
    sys.exit()


def records(name: str) -> Iterator[dict[str, Any]]:
    with (FOLDER / name).open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


passages = {str(passage["id"]): " ".join(passage["sentences"]) for passage in records("passages.jsonl")}
questions = list(records("questions.jsonl"))
embeddings = minilm()
store = faiss_store(Docs([*passages], [*passages.values()], np.array(embeddings.embed_documents([*passages.values()]))))
embeddings.embed_documents([question["question"] for question in questions])  # all at once, into the cache


def share(retriever: BaseRetriever) -> float:
    """The percentage of the questions whose evidence, two passages or more, is among the texts."""
    found = [{document.id for document in retriever.invoke(question["question"])} for question in questions]
    complete = [{*map(str, question["gold"])} <= ids for question, ids in zip(questions, found, strict=True)]
    return 100 * float(np.mean(complete))


nearest = share(store.as_retriever(search_kwargs={"k": 5}))
selected = share(SetSelectRetriever(vectorstore=store, k=5, fetch_k=50))
print(f"{len(questions)} questions, {len(passages)} passages. All evidence among 5 texts:")
print(f"  store.as_retriever  {nearest:.1f} % of the questions")
print(f"  SetSelectRetriever  {selected:.1f} %: {selected - nearest:+.1f} points")
