"""Questions of two steps: what references and following find, how far they can reach, and where names may mislead.

A text to which an earlier pick refers gets a bonus. The corpora are those of benchmarks/regimes.py whose texts have
titles. The figures are from the half of the questions on which nothing was chosen. Most columns use the selectors on
arrays. The rows of the public API use the retrievers of both frameworks, on a FAISS index that is filled with the same
vectors.

The first run embeds the names that are followed, and keeps them in .cache/ like all other vectors.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import faiss
import numpy as np
from langchain_core.embeddings import Embeddings
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import TextNode
from llama_index.vector_stores.faiss import FaissVectorStore

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import Block, facts, holds, parser, publish, records, require, say, table
from benchmarks.models import MINILM, embed
from benchmarks.references_corpora import MISLEADING
from benchmarks.regimes import Figures, interval
from benchmarks.regimes_methods import Method, Search, by_texts, by_vectors, search_for
from benchmarks.regimes_tasks import (
    REGIMES,
    SEED,
    STORED_THREE_TIMES,
    Case,
    Picks,
    Regime,
    embed_regime,
    steps,
    test_half,
)
from langchain_setselect import SetSelectRetriever
from llamaindex_setselect import SetSelectIndexRetriever
from shared_core import Coverage, TopK
from shared_core.texts.texts import find_references

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # the package is being replaced
    from langchain_community.docstore.in_memory import InMemoryDocstore
    from langchain_community.vectorstores import FAISS

PAGE = "references.md"
KS = (5, 10)
FOLDERS = {"HotpotQA": "hotpotqa", "HotpotQA dev": "hotpotqa_dev", "2WikiMultihopQA": "2wiki"}
FILES = [f"{folder}/{name}.jsonl" for folder in FOLDERS.values() for name in ("passages", "questions")]
ONE_CORPUS = "all passages in one corpus"
# What is asked of these columns, in percent of the questions, with 5 and 10 texts.
ASKED = {
    ("HotpotQA dev, paragraphs", "references"): (82, 90),
    ("2WikiMultihopQA, paragraphs", "references"): (46, 49),
    ("HotpotQA dev, paragraphs", "follow"): (86, 92),
    ("2WikiMultihopQA, paragraphs", "follow"): (78, 84),
}


class Corpus(NamedTuple):
    """Texts with their vectors, and the questions of the other half with theirs."""

    regime: Regime
    vectors: np.ndarray
    cases: list[Case]
    queries: np.ndarray

    def search(self, number: int, n: int, titles: bool = True) -> Search:
        """The n texts nearest to a question; without ``titles``, names are read from the texts."""
        return search_for(self.regime, self.cases[number], self.queries[number], self.vectors, n, titles=titles)


def corpus_of(regime: Regime) -> Corpus:
    half = test_half(regime)
    vectors, queries = embed_regime(half)
    return Corpus(regime, vectors, half.cases, queries)


# --- what selects -----------------------------------------------------------------------------------

# The rows of k texts for a question of a corpus, which is given by its number.
Select = Callable[[int, int], Picks]
ARRAYS: dict[str, tuple[Method, int, bool]] = {
    "similarity": (by_vectors(TopK()), 50, True),
    "words": (by_texts(Coverage(reference_weight=0)), 50, True),
    "references": (by_texts(Coverage()), 50, True),
    "references, names read from the texts": (by_texts(Coverage()), 50, False),
    "words, 200": (by_texts(Coverage(reference_weight=0)), 200, True),
    "references, 200": (by_texts(Coverage()), 200, True),
}
SHOWN = [*ARRAYS, "follow"]
API: dict[str, tuple[str, dict[str, Any]]] = {
    "LangChain, nothing set": ("LangChain", {}),
    "LangChain, follow": ("LangChain", {"follow": True}),
    "LlamaIndex, nothing set": ("LlamaIndex", {}),
    "LlamaIndex, follow": ("LlamaIndex", {"follow": True}),
}


class Cached(Embeddings):
    """MiniLM, whose vectors are kept in .cache/."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return embed(texts, MINILM).tolist()

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


class CachedModel(BaseEmbedding):
    """The same for LlamaIndex."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return Cached().embed_query(text)

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return Cached().embed_documents(texts)

    _get_query_embedding = _get_text_embedding

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


def from_arrays(corpus: Corpus, name: str) -> Select:
    method, n, titles = ARRAYS[name]
    return lambda number, k: method(corpus.search(number, n, titles), k)


def with_langchain(corpus: Corpus, **settings: Any) -> Select:
    """The retriever of LangChain. The documents' metadata has their titles."""
    rows = [{"row": row, "title": title} for row, title in enumerate(corpus.regime.names or [])]
    store = FAISS(Cached(), faiss.IndexFlatIP(corpus.vectors.shape[1]), InMemoryDocstore(), {})
    store.add_embeddings(zip(corpus.regime.texts, corpus.vectors.tolist(), strict=True), rows)
    retrievers = {k: SetSelectRetriever(vectorstore=store, k=k, **settings) for k in KS}
    return lambda number, k: [
        document.metadata["row"] for document in retrievers[k].invoke(corpus.cases[number].question)
    ]


def with_llamaindex(corpus: Corpus, **settings: Any) -> Select:
    nodes = [
        TextNode(text=text, metadata={"title": title}, embedding=vector, id_=str(row))
        for row, (text, title, vector) in enumerate(
            zip(corpus.regime.texts, corpus.regime.names or [], corpus.vectors.tolist(), strict=True)
        )
    ]
    store = FaissVectorStore(faiss.IndexFlatIP(corpus.vectors.shape[1]))
    context = StorageContext.from_defaults(vector_store=store)
    index = VectorStoreIndex(nodes, storage_context=context, embed_model=CachedModel())
    retrievers = {k: SetSelectIndexRetriever(index, top_n=k, **settings) for k in KS}
    return lambda number, k: [int(node.node_id) for node in retrievers[k].retrieve(corpus.cases[number].question)]


def measure(corpus: Corpus, select: Select) -> np.ndarray:
    return np.array([[100 * case.worth(select(number, k)) for k in KS] for number, case in enumerate(corpus.cases)])


# --- tables -----------------------------------------------------------------------------------------

# Per corpus and method: (questions, KS).
Found = dict[str, dict[str, np.ndarray]]


def both(values: np.ndarray) -> str:
    """The means with 5 and with 10 texts."""
    return " / ".join(f"{mean:.0f}" for mean in values.mean(axis=0)) if len(values) else ""


def found_table(found: Found, columns: Sequence[str]) -> str:
    rows = [
        [name, str(len(values[columns[0]])), *(both(values[method]) for method in columns)]
        for name, values in found.items()
    ]
    return table(["everything found among 5 / 10 texts", "questions", *columns], rows)


def interval_table(found: Found, questions: dict[str, list[str]], columns: Sequence[str]) -> str:
    def gain(name: str, method: str) -> Figures:
        return (found[name][method] - found[name]["similarity"]).mean(axis=1), questions[name]

    rows = [[name, *(interval([gain(name, method)]) for method in columns)] for name in found]
    return table(["points more than similarity, mean of both k", *columns], rows)


def verdict(found: Found) -> str:
    lines = []
    for (name, method), asked in ASKED.items():
        got = found[name][method].mean(axis=0)
        lines.append(
            f"- {holds(all(got >= asked))}: {name}, {method}, at least {asked[0]} / {asked[1]}. "
            f"Found: {got[0]:.1f} / {got[1]:.1f}."
        )
    return "\n".join(lines) + "\n"


def type_table(found: Found, types: dict[str, list[str]]) -> str:
    columns = ("similarity", "words", "references", "references, 200", "follow")
    rows = []
    for name, kinds in types.items():
        for kind in sorted(set(kinds)):
            kept = np.array(kinds) == kind
            shown = [both(found[f"{name}, paragraphs"][method][kept]) for method in columns]
            rows.append([f"{name}: {kind}", str(kept.sum()), *shown])
    return table(["everything found among 5 / 10 texts", "questions", *columns], rows)


def reach_table(corpora: dict[str, Corpus], gold: dict[str, list[set[int]]], types: dict[str, list[str]]) -> str:
    """How many questions have their texts among the candidates, and how many have texts that refer to each other."""
    rows = []
    for name, corpus in corpora.items():
        reached = []
        for number, wanted in enumerate(gold[name]):
            near = [set(corpus.search(number, n).rows.tolist()) for n in (50, 200)]
            some = [*wanted, *sorted(near[0] - wanted)]
            names = corpus.regime.names or []
            strength = find_references(
                [corpus.regime.texts[row] for row in some], [names[row] for row in some]
            ).strength
            connected = (strength + strength.T)[: len(wanted), : len(wanted)].any(axis=1)
            reached.append([wanted <= near[0], wanted <= near[1], connected.all()])
        share, kinds = 100 * np.array(reached, float), np.array(types[name])
        kept_of = {"all questions": np.ones(len(kinds), bool)} | {kind: kinds == kind for kind in sorted(set(kinds))}
        for kind, kept in kept_of.items():
            rows.append([f"{name}: {kind}", str(kept.sum()), *(f"{value:.1f}" for value in share[kept].mean(axis=0))])
    return table(["percent of the questions", "questions", "all among 50", "all among 200", "all connected"], rows)


def harm_table() -> str:
    """Corpora where names may mislead: what the words alone find, and what the words with references find."""
    rows = []
    for name, make in MISLEADING.items():
        regime, is_on_topic = make()
        vectors, queries = embed_regime(regime)
        corpus = Corpus(regime, vectors, regime.cases, queries)
        for k in KS:
            shown = []
            for method in ("similarity", "words", "references"):
                picks = [from_arrays(corpus, method)(number, k) for number in range(len(queries))]
                worth = [case.worth(some) for case, some in zip(regime.cases, picks, strict=True)]
                on_topic = [is_on_topic(number, row) for number, some in enumerate(picks) for row in some]
                copies = [near_copies(vectors[some]) for some in picks]
                shown.append(f"{100 * np.mean(worth):.0f} / {100 * np.mean(on_topic):.0f} / {np.mean(copies):.1f}")
            rows.append([name, str(k), str(len(queries)), *shown])
    return table(["corpus", "k", "questions", "similarity", "words", "references"], rows)


def near_copies(vectors: np.ndarray) -> int:
    """How many picks have a cosine of at least 0.8 with an earlier one."""
    return int((np.tril(vectors @ vectors.T, -1).max(axis=1) >= 0.8).sum())


# --- the page ---------------------------------------------------------------------------------------


def on_arrays_and_following(corpus: Corpus) -> dict[str, np.ndarray]:
    of_arrays = {method: measure(corpus, from_arrays(corpus, method)) for method in ARRAYS}
    return of_arrays | {"follow": measure(corpus, with_langchain(corpus, fetch_k=50, follow=True))}


def blocks() -> Iterator[Block]:
    warnings.filterwarnings("ignore", "nothing to select from")
    found: Found = {}
    api: Found = {}
    questions: dict[str, list[str]] = {}
    corpora: dict[str, Corpus] = {}
    make = {"LangChain": with_langchain, "LlamaIndex": with_llamaindex}
    for name, (make_regime, _) in (REGIMES | STORED_THREE_TIMES).items():
        if name.split(",")[0] in FOLDERS:
            corpus = corpus_of(make_regime())
            questions[name] = [case.question for case in corpus.cases]
            found[name] = on_arrays_and_following(corpus)
            if name.endswith(", paragraphs"):
                corpora[name.split(",")[0]] = corpus
                api[name] = {
                    row: measure(corpus, make[framework](corpus, **settings))
                    for row, (framework, settings) in API.items()
                }
            say(name)
    asked = {name: {q["question"]: q for q in records(f"{folder}/questions.jsonl")} for name, folder in FOLDERS.items()}
    of = {name: [asked[name][case.question] for case in corpus.cases] for name, corpus in corpora.items()}
    types = {name: [question["type"] for question in some] for name, some in of.items()}
    gold = {name: [set(question["gold"]) for question in some] for name, some in of.items()}
    packages = ["numpy", "sentence-transformers", "torch", "faiss-cpu", "langchain-core", "llama-index-core"]
    yield facts(FILES, packages, SEED)
    yield found_table(found, SHOWN)
    yield interval_table(found, questions, [method for method in SHOWN if method != "similarity"])
    yield ". Found: ", verdict(found)
    yield found_table(api, list(API))
    yield found_table({name: on_arrays_and_following(corpus) for name, corpus in whole_corpus().items()}, SHOWN)
    yield type_table(found, types)
    yield reach_table(corpora, gold, types)
    yield harm_table()


def whole_corpus() -> dict[str, Corpus]:
    """Each data set's questions over the passages of all of them."""
    parts = {name: corpus_of(steps(folder)) for name, folder in FOLDERS.items()}
    texts = [text for part in parts.values() for text in part.regime.texts]
    names = [name for part in parts.values() for name in part.regime.names or []]
    vectors = np.concatenate([part.vectors for part in parts.values()])
    corpora, first = {}, 0
    for name, part in parts.items():
        cases = [case._replace(worth=shifted(case.worth, first, len(part.vectors))) for case in part.cases]
        regime = part.regime._replace(texts=texts, names=names, cases=cases)
        corpora[f"{name}, {ONE_CORPUS}"] = Corpus(regime, vectors, cases, part.queries)
        first += len(part.vectors)
    return corpora


def shifted(worth: Callable[[Picks], float], first: int, count: int) -> Callable[[Picks], float]:
    """The worth of rows in a corpus in which the rows of the part begin at ``first``."""
    return lambda picks: worth([row - first for row in picks if 0 <= row - first < count])


def main() -> None:
    options = parser(__doc__, PAGE).parse_args()
    require(*FILES)
    publish(PAGE, blocks(), options.write)


if __name__ == "__main__":
    main()
