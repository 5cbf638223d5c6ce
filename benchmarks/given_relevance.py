"""What a given relevance changes: selections by hybrid scores and by the cosine, on three public data sets.

The candidates of a query are the 50 best of hybrid search: the rankings of BM25 (a score of search by words) and of
all-MiniLM-L6-v2, joined by reciprocal rank fusion. Each method selects from the candidates once by the cosine and once
by the fused scores. Whether the words of the question should enter a relevance that was given is decided on the
development half of the queries, split as in benchmarks/regimes.py.

"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from benchmarks.common import Block, best, bm25_scores, facts, is_there, parser, publish, records, table, with_interval
from benchmarks.models import MINILM, embed
from benchmarks.regimes_methods import FETCH_K, Method, Search, by_texts, objective, reciprocal_ranks
from benchmarks.regimes_tasks import is_development
from shared_core import MMR, NDPP, VRSD, Candidates, Coverage, Selector, TopK, rescale
from shared_core.evaluation.measures import (
    alpha_ndcg,
    mean_pairwise_cosine,
    ndcg,
    recall,
    subtopic_recall,
)
from shared_core.scaling import Scale

PAGE = "given_relevance.md"
KS = (5, 10)
METHODS: dict[str, Selector] = {
    "similarity": TopK(),
    "VRSD": VRSD(),
    "MMR λ 0.5": MMR(lambda_mult=0.5),
    "MMR λ 0.75": MMR(lambda_mult=0.75),
    "NDPP, linear": NDPP(relevance_mapping="linear"),
    "NDPP, T 0.1": NDPP(relevance_mapping="exponential", temperature=0.1),
    "NDPP()": NDPP(),
}
# Both cover the words. In the second the words do not enter the relevance; the selector has no such setting.
WORDS_ENTER, WORDS_COVER = "setselect", "setselect, words only to cover"
WITH_WORDS: dict[str, Method] = {WORDS_ENTER: by_texts(Coverage()), WORDS_COVER: objective(h=0)}
SCALES: dict[str, Scale | None] = {"minmax": "minmax", "rank": "rank", "as they came": None}
FUSED = "hybrid, no selection"


class Task(NamedTuple):
    """Texts to search, queries, and for each query its right documents with the subtopics that they cover."""

    texts: list[str]
    queries: list[str]
    right: list[dict[int, dict[object, int]]]
    measures: tuple[str, ...]


def scifact() -> Task:
    """Claims and the abstracts that the annotators were shown: mostly one right abstract, and few repetitions."""
    corpus, claims = records("scifact/corpus.jsonl"), records("scifact/claims.jsonl")
    row_of = {document["id"]: row for row, document in enumerate(corpus)}
    return Task(
        [f"{document['title']} {' '.join(document['abstract'])}" for document in corpus],
        [claim["claim"] for claim in claims],
        [{row_of[name]: {name: 1} for name in claim["cited_doc_ids"]} for claim in claims],
        ("recall", "nDCG"),
    )


def hotpotqa() -> Task:
    """Questions that need two paragraphs, cut into windows of two sentences that overlap: the corpus repeats itself."""
    texts: list[str] = []
    windows: dict[int, list[int]] = {}
    for passage in records("hotpotqa/passages.jsonl"):
        sentences = passage["sentences"]
        for start in range(max(1, len(sentences) - 1)):
            windows.setdefault(passage["id"], []).append(len(texts))
            texts.append(" ".join(sentences[start : start + 2]))
    questions = records("hotpotqa/questions.jsonl")
    return Task(
        texts,
        [question["question"] for question in questions],
        [{row: {gold: 1} for gold in question["gold"] for row in windows[gold]} for question in questions],
        ("paragraphs found", "α-nDCG"),
    )


def perspectrum() -> Task:
    """Debated claims and perspectives on them, in clusters of the same meaning: the answer is one of each cluster."""
    pool, claims = records("perspectrum/perspectives.jsonl"), records("perspectrum/claims.jsonl")
    row_of = {perspective["id"]: row for row, perspective in enumerate(pool)}
    right = []
    for claim in claims:
        covered: dict[int, dict[object, int]] = {}
        for number, cluster in enumerate(claim["clusters"]):
            for name in cluster["perspective_ids"]:
                covered.setdefault(row_of[name], {})[number] = 1
        right.append(covered)
    return Task(
        [perspective["text"] for perspective in pool],
        [claim["claim"] for claim in claims],
        right,
        ("meanings found", "α-nDCG"),
    )


TASKS: dict[str, tuple[Callable[[], Task], tuple[str, ...]]] = {
    "SciFact": (scifact, ("scifact/corpus.jsonl", "scifact/claims.jsonl")),
    "HotpotQA, overlapping windows": (hotpotqa, ("hotpotqa/passages.jsonl", "hotpotqa/questions.jsonl")),
    "Perspectrum": (perspectrum, ("perspectrum/perspectives.jsonl", "perspectrum/claims.jsonl")),
}


def rankings_of(task: Task, k: int) -> dict[str, list[list[int]]]:
    """The ``k`` rows of every method for each query, in order."""
    vectors, queries = embed(task.texts, MINILM), embed(task.queries, MINILM)
    found: dict[str, list[list[int]]] = {}
    for question, query, scores_of_words in zip(
        task.queries, queries, bm25_scores(task.texts, task.queries), strict=True
    ):
        dense, sparse = best(vectors @ query, FETCH_K), best(scores_of_words, FETCH_K)
        sparse = sparse[scores_of_words[sparse] > 0]
        fused = reciprocal_ranks([dense.tolist(), sparse.tolist()])
        rows, scores = np.array(list(fused))[:FETCH_K], np.array(list(fused.values()))[:FETCH_K]
        picks = {"vectors, no selection": dense[:k], "BM25, no selection": sparse[:k], FUSED: rows[:k]}
        cosines = Candidates(query, vectors[rows])
        for name, selector in METHODS.items():
            picks[f"{name}; cosine"] = rows[selector.select(cosines, k).indices]
        search = Search(question, query, rows, vectors[rows], [task.texts[row] for row in rows], sparse)
        for name, method in WITH_WORDS.items():
            picks[f"{name}; cosine"] = np.array(method(search, k))
        for label, scale in SCALES.items():
            scaled = rescale(scores, scale)
            given = cosines.with_query(query, scaled)
            for name, selector in METHODS.items():
                # Similarity by the fused scores is the fused ranking; VRSD takes no relevance.
                if not isinstance(selector, (TopK, VRSD)):
                    picks[f"{name}; fused, {label}"] = rows[selector.select(given, k).indices]
            for name, method in WITH_WORDS.items():
                picks[f"{name}; fused, {label}"] = np.array(method(replace(search, relevance=scaled), k))
        for name, ranked in picks.items():
            found.setdefault(name, []).append(ranked.tolist())
    return found


def score(measure: str, rows: list[int], right: Mapping[int, Mapping[object, int]], k: int) -> float:
    """The value of a measure for the rows that one query got."""
    if measure == "recall":
        return recall(rows, right)
    if measure == "nDCG":
        return ndcg(rows, right, k)
    subtopics: dict[str, list[str]] = {}
    for row, covered in right.items():
        for subtopic in covered:
            subtopics.setdefault(str(subtopic), []).append(str(row))
    ranking = [*map(str, rows)]
    return alpha_ndcg(ranking, subtopics, k) if measure == "α-nDCG" else subtopic_recall(ranking, subtopics)


def difference(ours: np.ndarray, theirs: np.ndarray) -> str:
    """The mean paired difference in points and its 95 % interval, bold if the interval excludes 0."""
    return with_interval(100 * (ours - theirs), 1, bold="all")


def measured(title: str, task: Task, k: int) -> tuple[str, list[str]]:
    """The table of a task, and the row of :func:`decision`."""
    vectors, rankings = embed(task.texts, MINILM), rankings_of(task, k)
    columns = {
        method: {
            name: np.array([score(name, rows, right, k) for rows, right in zip(ranked, task.right, strict=True)])
            for name in task.measures
        }
        for method, ranked in rankings.items()
    }
    rows = []
    for method, values in columns.items():
        name, _, relevance = method.partition("; ")
        by_cosine = columns.get(f"{name}; cosine")
        # BM25 alone may find a single text, which has no pairs.
        repeated = [mean_pairwise_cosine(vectors[rows]) for rows in rankings[method] if len(rows) > 1]
        row = [method, f"{np.mean(repeated):.3f}"]
        for measure, column in values.items():
            row.append(f"{100 * column.mean():.1f}")
            row.append("" if method == FUSED else difference(column, columns[FUSED][measure]))
            compared = by_cosine is not None and relevance != "cosine"
            row.append(difference(column, by_cosine[measure]) if compared else "")
        rows.append(row)
    head = ["method; relevance", "cosine between picks"]
    for name in task.measures:
        head += [f"{name}@{k}", "− hybrid, no selection", "− the same by the cosine"]
    words = compare_words(task, next(iter(columns[FUSED])), columns)
    return table(head, rows), [f"{title}, k = {k}", *words]


def compare_words(task: Task, measure: str, columns: dict[str, dict[str, np.ndarray]]) -> list[str]:
    """What it adds that the words enter the fused scores, on the development half and on the other half."""
    enter, cover, hybrid = (
        columns[name][measure] for name in (f"{WORDS_ENTER}; fused, minmax", f"{WORDS_COVER}; fused, minmax", FUSED)
    )
    development = np.array([is_development(query) for query in task.queries])
    return [
        difference(some[half], others[half])
        for half in (development, ~development)
        for some, others in ((enter, cover), (enter, hybrid), (cover, hybrid))
    ]


def decision(rows: Sequence[Sequence[str]]) -> str:
    names = ["words enter − only cover", "words enter − hybrid", "only cover − hybrid"]
    halves = [f"{name}, {half}" for half in ("development half", "other half") for name in names]
    return table(["task", *halves], rows)


def blocks(tasks: dict[str, Task]) -> Iterator[Block]:
    packages = ["setselect", "numpy", "bm25s", "sentence-transformers", "ir_measures", "scipy"]
    files = [file for title in tasks for file in TASKS[title][1]]
    yield facts(files, packages, "0, of the bootstrap")
    sections = {(title, k): measured(title, task, k) for title, task in tasks.items() for k in KS}
    yield decision([row for _, row in sections.values()])
    for (title, k), (section, _) in sections.items():
        yield from (f"## {title}, k = {k}", section)


def main() -> None:
    options = parser(__doc__, PAGE).parse_args()
    tasks = {title: read() for title, (read, files) in TASKS.items() if is_there(*files)}
    if tasks:
        publish(PAGE, blocks(tasks), options.write)


if __name__ == "__main__":
    main()
