"""Citations by number: questions that need a passage of a rule book and the passage that it cites ("Rule 4.5.1").

The default selects from the 50 nearest of all 12,988 passages of 40 rule books, with and without citations. The cost is
the time of the processor that 50 texts take until their words and references are known.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from langchain_community.vectorstores import FAISS
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.embeddings import Embeddings

from benchmarks.common import Block, facts, holds, parser, publish, records, require, table, with_interval
from benchmarks.models import MINILM, embed
from benchmarks.regimes_methods import search_for
from benchmarks.regimes_tasks import KINDS, REGIMES, SEED, embed_regime, test_half, without_copies
from langchain_setselect import SetSelectRetriever
from shared_core import Candidates, Coverage, References, TopK, find_references, match_words
from shared_core.selectors import coverage
from shared_core.texts import Texts, as_texts
from shared_core.texts.identifiers import list_identifiers
from shared_core.texts.names import list_names
from shared_core.texts.references import find_split_references
from shared_core.texts.words import Text

PAGE = "citations.md"
FILES = ("obliqa/docs.jsonl", "obliqa_crossref/queries.jsonl")
KS = (5, 10)
FETCH_K = 50
# What is asked of the other half, in points above the default without citations.
ASKED = (8, 4)
WEIGHTS = (0.0, 1.0, 2.0, 3.0, 4.0, 6.0)
SIMILARITY, WITHOUT, WITH, FOLLOWING = "similarity", "default without citations", "default", "default, `follow=True`"
# The corpora of which 50 texts are read, and how often.
READ, TURNS = ("obliqa", "anthropic_docs", "anthropic_code", "privacy_qa", "chunking"), 30


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
    queries = embed([one["text"] for one in asked], MINILM, query=True)
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


class Queries(Embeddings):
    """The vectors of the questions, and of the names that are followed."""

    def __init__(self, texts: list[str], vectors: np.ndarray) -> None:
        self.vectors = dict(zip(texts, vectors.tolist(), strict=True))

    def embed_query(self, text: str) -> list[float]:
        return self.vectors[text]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return embed(texts, MINILM).tolist()


def measure_following() -> tuple[np.ndarray, float, float]:
    """(questions, KS), through LangChain's FAISS store; and the mean number of more searches, all and by number."""
    documents, asked = records(FILES[0]), records(FILES[1])
    texts, questions = [one["text"] for one in documents], [one["text"] for one in asked]
    model = Queries(questions, embed(questions, MINILM, query=True))
    pairs = zip(texts, embed(texts, MINILM).tolist(), strict=True)
    metadata = [{"source": one["source"], "section": one["section"]} for one in documents]
    store = FAISS.from_embeddings(pairs, model, metadata, [one["id"] for one in documents])
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


def cost_table() -> str:
    rows = []
    for name in READ:
        documents = records(f"{name}/docs.jsonl")
        some = [documents[i] for i in np.random.default_rng(SEED).choice(len(documents), 50, replace=False)]
        texts = [one["text"] for one in some]
        called = [(one["section"],) if "section" in one else () for one in some]
        columns: dict[str, Any] = {"identifiers": called, "sources": [one.get("source") for one in some]}
        took: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(TURNS):
            for reads in took:
                split = as_texts(texts, **(columns if reads else {}))
                if not reads:
                    split.__dict__["identifiers"] = []
                start = time.process_time()
                split.match_words("What must a person do when the rule is not met?")
                _ = split.references
                took[reads].append(1000 * (time.process_time() - start))
        off, on = min(took[False]), min(took[True])
        rows.append([name, f"{off:.1f}", f"{on:.1f}", f"{100 * (on / off - 1):+.0f} %"])
    return table(["milliseconds for 50 texts", "without identifiers", "with identifiers", "more"], rows)


def harm_table() -> str:
    """What citations change on the tasks of benchmarks/regimes.py, whose texts have no metadata but their titles."""
    rows = []
    for kind, names in KINDS.items():
        changes = []
        for name in names:
            regime = test_half(without_copies(REGIMES[name][0]()))
            vectors, queries = embed_regime(regime)
            for case, query in zip(regime.cases, queries, strict=True):
                search = search_for(regime, case, query, vectors)
                split = list(map(Text, search.texts))
                named = list_names(search.names, search.texts)
                called = list_identifiers(None, split)
                citing = find_split_references(split, named, search.names, None, None, called)
                with_citations = search.with_texts.with_checked(references=citing)
                picks = [
                    search.rows[Coverage().select(candidates, max(regime.ks)).indices]
                    for candidates in (with_citations, search.with_texts)
                ]
                worth, before = (np.mean([case.worth(some[:k].tolist()) for k in regime.ks]) for some in picks)
                changes.append(100 * (worth - before))
        rows.append([kind, str(len(changes)), with_interval(changes, 2)])
    return table(["points that citations add", "questions of the other half", "mean"], rows)


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
    weighed = []
    for weight in WEIGHTS:
        with mock.patch.object(coverage, "REFERRED", (*coverage.REFERRED[:2], weight, coverage.REFERRED[3])):
            half = [one for one, chooses in zip(questions, development, strict=True) if chooses]
            weighed.append([f"{weight:g}", both(measure(half, WITH))])
    yield table(["weight of citations", "choosing half, everything found among 5 / 10"], weighed)
    yield harm_table()
    yield cost_table()


def main() -> None:
    options = parser(__doc__, PAGE).parse_args()
    require(*FILES, *(f"{name}/docs.jsonl" for name in READ))
    publish(PAGE, blocks(), options.write)


if __name__ == "__main__":
    main()
