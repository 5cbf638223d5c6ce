"""Questions of two steps: what references and following find.

A text to which an earlier pick refers gets a bonus. The corpora are those of benchmarks/regimes.py whose texts have
titles. The figures are from the half of the questions on which nothing was chosen. The selectors work on arrays;
following uses LangChain's retriever, on a FAISS index that is filled with the same vectors.

The first run embeds the names that are followed, and keeps them in .cache/ like all other vectors.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.common import Block, facts, holds, parser, publish, require, say, table
from benchmarks.models import Cached, faiss_store
from benchmarks.regimes import Figures, interval
from benchmarks.regimes_methods import Method, by_texts, by_vectors, search_for
from benchmarks.regimes_tasks import REGIMES, SEED, Regime, embed_regime, test_half
from langchain_setselect import SetSelectRetriever
from shared_core import Coverage, TopK

PAGE = "references.md"
KS = (5, 10)
TASKS = [name for name in REGIMES if name.startswith(("HotpotQA", "2WikiMultihopQA"))]
FILES = list(dict.fromkeys(file for name in TASKS for file in REGIMES[name][1]))
# What is asked of these columns, in percent of the questions, with 5 and 10 texts.
ASKED = {
    ("HotpotQA dev, paragraphs", "references"): (82, 90),
    ("2WikiMultihopQA, paragraphs", "references"): (46, 49),
    ("HotpotQA dev, paragraphs", "follow"): (86, 92),
    ("2WikiMultihopQA, paragraphs", "follow"): (78, 84),
}
# The method, the number of candidates, and whether names are the titles; else they are read from the texts.
ARRAYS: dict[str, tuple[Method, int, bool]] = {
    "similarity": (by_vectors(TopK()), 50, True),
    "words": (by_texts(Coverage(reference_weight=0)), 50, True),
    "references": (by_texts(Coverage()), 50, True),
    "references, names read from the texts": (by_texts(Coverage()), 50, False),
    "words, 200": (by_texts(Coverage(reference_weight=0)), 200, True),
    "references, 200": (by_texts(Coverage()), 200, True),
}
FOLLOW = "follow"
# Per corpus and method: (questions, KS), in percent.
Found = dict[str, dict[str, np.ndarray]]


def measure(regime: Regime) -> dict[str, np.ndarray]:
    vectors, queries = embed_regime(regime)
    found: dict[str, list[list[float]]] = {name: [] for name in (*ARRAYS, FOLLOW)}
    metadata = [{"row": row, "title": title} for row, title in enumerate(regime.names or [])]
    store = faiss_store(Cached(), regime.texts, vectors, metadata)
    following = {k: SetSelectRetriever(vectorstore=store, k=k, fetch_k=50, follow=True) for k in KS}
    for case, query in zip(regime.cases, queries, strict=True):
        for name, (method, n, titles) in ARRAYS.items():
            search = search_for(regime, case, query, vectors, n, titles=titles)
            found[name].append([100 * case.worth(method(search, k)) for k in KS])
        picks = [[one.metadata["row"] for one in following[k].invoke(case.question)] for k in KS]
        found[FOLLOW].append([100 * case.worth(rows) for rows in picks])
    return {name: np.array(values) for name, values in found.items()}


def found_table(found: Found) -> str:
    rows = [
        [
            name,
            str(len(values[FOLLOW])),
            *(" / ".join(f"{mean:.0f}" for mean in of.mean(axis=0)) for of in values.values()),
        ]
        for name, values in found.items()
    ]
    return table(["everything found among 5 / 10 texts", "questions", *ARRAYS, FOLLOW], rows)


def interval_table(found: Found, questions: dict[str, list[str]]) -> str:
    methods = [name for name in (*ARRAYS, FOLLOW) if name != "similarity"]

    def gain(name: str, method: str) -> Figures:
        return (found[name][method] - found[name]["similarity"]).mean(axis=1), questions[name]

    rows = [[name, *(interval([gain(name, method)]) for method in methods)] for name in found]
    return table(["points more than similarity, mean of both k", *methods], rows)


def verdict(found: Found) -> str:
    lines = []
    for (name, method), asked in ASKED.items():
        got = found[name][method].mean(axis=0)
        lines.append(
            f"- {holds(all(got >= asked))}: {name}, {method}, at least {asked[0]} / {asked[1]}. "
            f"Found: {got[0]:.1f} / {got[1]:.1f}."
        )
    return "\n".join(lines) + "\n"


def blocks(names: Sequence[str]) -> Iterator[Block]:
    warnings.filterwarnings("ignore", "nothing to select from")
    found: Found = {}
    questions: dict[str, list[str]] = {}
    for name in names:
        regime = test_half(REGIMES[name][0]())
        found[name], questions[name] = measure(regime), [case.question for case in regime.cases]
        say(name)
    yield facts(FILES, ["numpy", "sentence-transformers", "torch", "faiss-cpu", "langchain-core"], SEED)
    yield found_table(found)
    yield interval_table(found, questions)
    yield ". Found: ", verdict(found)


def main() -> None:
    options = parser(__doc__, PAGE).parse_args()
    require(*FILES)
    publish(PAGE, blocks(TASKS), options.write)


if __name__ == "__main__":
    main()
