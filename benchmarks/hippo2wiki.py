"""Recall@5 on the 2WikiMultihopQA of HippoRAG, beside the figures that systems with a graph publish for it.

The corpus is HippoRAG's, and as there each text begins with its title. The questions are those of its 1,000 whose right
passages can be read from the evidence triples (README.md of the data). The rows are retrievers of LangChain on a FAISS
index with all-MiniLM-L6-v2. Times are processor time of one thread, and include the embedding of the question.

The first run embeds the passages, and the names that are followed, and keeps the vectors in .cache/.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever

from benchmarks.common import Block, facts, parser, publish, records, require, say, table, take_turns, with_interval
from benchmarks.models import MAX_TOKENS, MINILM, PACKAGES, Cached, embed, faiss_store
from langchain_setselect import SetSelectRetriever

PAGE = "hippo2wiki.md"
FILES = ("hippo2wiki/docs.jsonl", "hippo2wiki/queries.jsonl")
K = 5
TURNS = 60
# Recall@5 with all 1,000 questions, as published.
PUBLISHED = {"NV-Embed-v2": "76.5", "HippoRAG 2": "90.4", "Vector Graph RAG": "94.1"}

Make = Callable[[Any], BaseRetriever]


def similarity(store: Any) -> BaseRetriever:
    return store.as_retriever(search_kwargs={"k": K})


def with_settings(**settings: Any) -> Make:
    return lambda store: SetSelectRetriever(vectorstore=store, k=K, **settings)


ROWS: dict[str, Make] = {
    "similarity": similarity,
    "setselect, nothing set": with_settings(),
    "`fetch_k=200`": with_settings(fetch_k=200),
    "`keyword_search=True`": with_settings(keyword_search=True),
    "`follow=True`": with_settings(follow=True),
    "`follow=True, keyword_search=True`": with_settings(follow=True, keyword_search=True),
}
FOLLOW = "`follow=True`"


class Model(Embeddings):
    """MiniLM itself, for times."""

    def __init__(self) -> None:
        from _minilm import load_minilm

        self._encoder = load_minilm().model
        self._encoder.max_seq_length = MAX_TOKENS

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._encoder.encode(texts, normalize_embeddings=True).tolist()

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def store_of(
    documents: list[dict[str, Any]], embeddings: Embeddings, before: str = "{title}\n", titles: bool = True
) -> Any:
    """``before``: what stands before each text. With ``titles`` they are in the metadata too."""
    texts = [before.format_map(document) + document["text"] for document in documents]
    vectors = embed(texts, MINILM)
    metadata = [{"name": document["id"]} | ({"title": document["title"]} if titles else {}) for document in documents]
    return faiss_store(embeddings, texts, vectors, metadata)


def recall(retriever: BaseRetriever, questions: list[dict[str, Any]]) -> np.ndarray:
    """For each question the share of its right passages among the texts, in percent."""
    shares = []
    for question in questions:
        names = {document.metadata["name"] for document in retriever.invoke(question["text"])}
        shares.append(100 * len(names & set(question["gold"])) / len(set(question["gold"])))
    return np.array(shares)


def seconds(documents: list[dict[str, Any]], questions: list[dict[str, Any]]) -> dict[str, float]:
    """The median seconds of a question."""
    store = store_of(documents, Model())
    runs = {name: make(store).invoke for name, make in ROWS.items()}
    took = take_turns(runs, [question["text"] for question in questions[: TURNS + 2]], TURNS, clock=time.process_time)
    return {name: statistics.median(times) for name, times in took.items()}


def found_table(found: dict[str, np.ndarray], took: dict[str, float]) -> str:
    rows = []
    for name, shares in found.items():
        more = "" if name == "similarity" else with_interval(shares - found["similarity"], 1)
        milliseconds = f"{1000 * took[name]:.0f}" if name in took else ""
        rows.append([name, f"{shares.mean():.1f}", f"{100 * (shares == 100).mean():.1f}", more, milliseconds])
    rows += [[f"{name}, published, its own model", figure, "", "", ""] for name, figure in PUBLISHED.items()]
    return table(["method", "Recall@5", "all right passages", "more than similarity", "ms a question"], rows)


def blocks() -> Iterator[Block]:
    documents, questions = (records(file) for file in FILES)
    store = store_of(documents, Cached())
    found = {}
    for name, make in ROWS.items():
        found[name] = recall(make(store), questions)
        say(name)
    no_metadata = store_of(documents, Cached(), titles=False)
    found["`follow=True`, no titles in the metadata"] = recall(ROWS[FOLLOW](no_metadata), questions)
    without = store_of(documents, Cached(), before="")
    alone = {name: recall(ROWS[name](without), questions) for name in ("similarity", "setselect, nothing set", FOLLOW)}
    packages = ["numpy", "sentence-transformers", "faiss-cpu", "langchain-core", PACKAGES[MINILM][0]]
    yield facts(FILES, packages)
    yield found_table(found, seconds(documents, questions))
    rows = [[name, f"{shares.mean():.1f}"] for name, shares in alone.items()]
    yield table(["texts without their titles before them", "Recall@5"], rows)


def main() -> None:
    options = parser(__doc__, PAGE).parse_args()
    require(*FILES)
    publish(PAGE, blocks(), options.write)


if __name__ == "__main__":
    main()
