"""Citations by number: questions that need a passage of a rule book and the passage that it cites ("Rule 4.5.1").

The default selects from the 50 nearest of all 12,988 passages of 40 rule books, with and without citations.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from langchain_core.callbacks import BaseCallbackHandler

from benchmarks.common import Block, facts, holds, parser, publish, records, require, table, with_interval
from benchmarks.models import MINILM, Cached, embed, faiss_store
from benchmarks.regimes_tasks import SEED
from langchain_setselect import SetSelectRetriever
from shared_core import Candidates, Coverage, References, TopK, find_references, match_words
from shared_core.texts import Texts

PAGE = "citations.md"
FILES = ("obliqa/docs.jsonl", "obliqa_crossref/queries.jsonl")
KS = (5, 10)
FETCH_K = 50
# What is asked of the other half, in points above the default without citations.
ASKED = (8, 4)
SIMILARITY, WITHOUT, WITH, FOLLOWING = "similarity", "default without citations", "default", "default, `follow=True`"


class Question(NamedTuple):
    """A question with its candidates, and the rows among them of the passages that it needs; None: one is missing."""

    candidates: Candidates
    references: References
    without: References
    gold: frozenset[int] | None

    def is_complete(self, method: str) -> list[float]:
        """For each k whether the picks have all passages."""
        if self.gold is None:
            return [0.0] * len(KS)
        selector = TopK() if method == SIMILARITY else Coverage()
        references = None if method == SIMILARITY else self.references if method == WITH else self.without
        candidates = self.candidates if references is None else self.candidates.with_checked(references=references)
        return [100.0 * (self.gold <= {*selector.select(candidates, k).indices.tolist()}) for k in KS]


def is_development(text: str) -> bool:
    """Whether a question chooses. All of them are in the half of regimes_tasks.is_development that does."""
    return hashlib.sha256(text.encode()).digest()[1] % 2 == 0


def read_questions() -> tuple[list[Question], np.ndarray]:
    """The questions, and for each whether it chooses."""
    documents, asked = records(FILES[0]), records(FILES[1])
    vectors = embed([one["text"] for one in documents], MINILM)
    queries = embed([one["text"] for one in asked], MINILM)
    questions = []
    for question, query in zip(asked, queries, strict=True):
        rows = np.argsort(-(vectors @ query), kind="stable")[:FETCH_K].tolist()
        near = [documents[row] for row in rows]
        texts = [one["text"] for one in near]
        place = {one["id"]: number for number, one in enumerate(near)}
        gold = frozenset(place[name] for name in question["gold"] if name in place)
        called = {"identifiers": [one["section"] for one in near], "sources": [one["source"] for one in near]}
        without = Texts(texts)
        without.__dict__["identifiers"] = []
        assert without.references is not None
        questions.append(
            Question(
                Candidates(query, vectors[rows], words=match_words(question["text"], texts)),
                find_references(texts, **called),
                without.references,
                gold if len(gold) == len(question["gold"]) else None,
            )
        )
    return questions, np.array([is_development(one["text"]) for one in asked])


def measure(questions: list[Question], method: str) -> np.ndarray:
    """(questions, KS)"""
    return np.array([question.is_complete(method) for question in questions])


def measure_following() -> tuple[np.ndarray, float, float]:
    """(questions, KS), through LangChain's FAISS store; and the mean number of more searches, all and by number."""
    documents, asked = records(FILES[0]), records(FILES[1])
    texts = [one["text"] for one in documents]
    metadata = [{"source": one["source"], "section": one["section"]} for one in documents]
    store = faiss_store(Cached(), texts, embed(texts, MINILM), metadata, [one["id"] for one in documents])
    store.embeddings.learn([one["text"] for one in asked])
    found, told = np.zeros((len(asked), len(KS))), list[list[str]]()

    class Events(BaseCallbackHandler):
        def on_custom_event(self, name: str, data: Any, **more: Any) -> None:
            told.append([one["kind"] for one in data["followed"]])

    for place, k in enumerate(KS):
        retriever = SetSelectRetriever(vectorstore=store, k=k, fetch_k=FETCH_K, follow=True)
        for row, question in enumerate(asked):
            picks = retriever.invoke(question["text"], {"callbacks": [Events()]})
            found[row, place] = 100.0 * ({*question["gold"]} <= {one.id for one in picks})
    return found, float(np.mean([*map(len, told)])), float(np.mean([kinds.count("citation") for kinds in told]))


def both(values: np.ndarray) -> str:
    return " / ".join(f"{mean:.1f}" for mean in values.mean(axis=0))


def blocks() -> Iterator[Block]:
    questions, development = read_questions()
    found = {method: measure(questions, method) for method in (SIMILARITY, WITHOUT, WITH)}
    found[FOLLOWING], searches, cited = measure_following()
    yield facts(FILES, ["langchain-core", "faiss-cpu", "numpy", "sentence-transformers", "torch"], SEED)
    rows = [
        [method, both(values), both(values[development]), both(values[~development])]
        for method, values in found.items()
    ]
    counts = [
        f"{name}, {number}"
        for name, number in (("choosing half", development.sum()), ("other half", (~development).sum()))
    ]
    yield table(["everything found among 5 / 10 texts, percent", f"all {len(questions)}", *counts], rows)
    gains = (found[WITH] - found[WITHOUT])[~development]
    verdicts = [
        f"- {holds(gains[:, place].mean() >= asked)}: k = {k}, at least +{asked}. "
        f"Found: {with_interval(gains[:, place], 1)}."
        for place, (k, asked) in enumerate(zip(KS, ASKED, strict=True))
    ]
    yield ". Found: ", "\n".join(verdicts) + "\n"
    yield (
        "further searches",
        f"With `follow=True` a question has {searches:.1f} further searches on average, {cited:.1f} for citations.\n",
    )


def main() -> None:
    options = parser(__doc__, PAGE).parse_args()
    require(*FILES)
    publish(PAGE, blocks(), options.write)


if __name__ == "__main__":
    main()
