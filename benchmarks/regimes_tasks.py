"""The tasks of benchmarks/regimes.py: corpora, their questions, and what a set of texts is worth for a question."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.common import best, records
from benchmarks.models import MINILM, embed

SEED = 0
QUERIES = 500  # of each task, drawn by the seed where there are more

Picks = list[int]
Parts = Sequence[frozenset[object]]  # of each text


class Case(NamedTuple):
    """A question, the rows of its candidates in ``Regime.texts``, and the worth of a list of these rows, 0 to 1."""

    question: str
    pool: np.ndarray | None  # None: the whole corpus
    worth: Callable[[Picks], float]

    def rows(self, count: int) -> np.ndarray:
        """The rows of the candidates in a corpus of ``count`` texts."""
        return np.arange(count) if self.pool is None else self.pool


class Regime(NamedTuple):
    """A corpus and its questions."""

    texts: list[str]
    cases: list[Case]
    measure: str
    ks: tuple[int, ...] = (5, 10)
    names: list[str] | None = None  # titles, one for each text; None: the data has none


def draw(items: Sequence[dict], count: int = QUERIES) -> list[dict]:
    """``count`` of the items, drawn by the seed, in their order."""
    if len(items) <= count:
        return list(items)
    return [items[row] for row in sorted(np.random.default_rng(SEED).choice(len(items), count, replace=False))]


def share(question: str, parts_of: Parts, wanted: frozenset[object], pool: np.ndarray | None = None) -> Case:
    """A case whose worth is the share of the wanted parts that the picks have; row i has ``parts_of[i]``."""
    return Case(
        question, pool, lambda picks: len(wanted & frozenset().union(*(parts_of[row] for row in picks))) / len(wanted)
    )


def complete(case: Case) -> Case:
    """The case with worth 1 if the picks have every wanted part, else 0."""
    return case._replace(worth=lambda picks: float(case.worth(picks) == 1))


def singles(items: Sequence[dict], key: str = "id") -> Parts:
    """Each item has one part, its id."""
    return [frozenset([item[key]]) for item in items]


def steps(folder: str, windows: bool = False) -> Regime:
    """Questions that need two paragraphs or more, as paragraphs or as windows of two sentences that overlap."""
    texts: list[str] = []
    names: list[str] = []
    passage_of: list[frozenset[object]] = []
    for passage in records(f"{folder}/passages.jsonl"):
        sentences = passage["sentences"]
        starts = range(max(1, len(sentences) - 1)) if windows else range(1)
        for start in starts:
            text = " ".join(sentences[start : start + 2] if windows else sentences)
            texts.append(text)
            names.append(passage["title"])
            passage_of.append(frozenset([passage["id"]]))
    cases = []
    for question in records(f"{folder}/questions.jsonl"):
        cases.append(complete(share(question["question"], passage_of, frozenset(question["gold"]))))
    return Regime(texts, cases, "every paragraph found", names=names)


def strategyqa() -> Regime:
    """Yes/no questions that need several facts; the corpus is the facts of all questions."""
    facts = records("strategyqa/facts.jsonl")
    cases = [
        complete(share(question["question"], singles(facts), frozenset(question["gold"])))
        for question in draw(records("strategyqa/questions.jsonl"))
    ]
    return Regime([fact["text"] for fact in facts], cases, "every fact found")


def scifact() -> Regime:
    """Claims with mostly one right abstract: diversity can only cost."""
    corpus = records("scifact/corpus.jsonl")
    cases = [
        share(claim["claim"], singles(corpus), frozenset(claim["cited_doc_ids"]))
        for claim in draw(records("scifact/claims.jsonl"))
    ]
    texts = [f"{document['title']} {' '.join(document['abstract'])}" for document in corpus]
    return Regime(texts, cases, "right abstracts found", names=[document["title"] for document in corpus])


def openbookqa() -> Regime:
    facts = records("openbookqa/facts.jsonl")
    questions = [question for question in records("openbookqa/questions.jsonl") if question["split"] != "train"]
    cases = [
        share(question["question"], singles(facts), frozenset([question["fact1_id"]])) for question in draw(questions)
    ]
    return Regime([fact["text"] for fact in facts], cases, "the right fact found")


def pir(every: bool) -> Regime:
    """Questions that name a perspective, and the documents of their subset that fit it: one of them, or every one.

    The paper counts a question as answered by one right document. In the subset Perspectrum the right documents are
    paraphrases of each other, so to find every one of them is to repeat oneself.
    """
    corpus = records("pir/corpus.jsonl")
    names = singles(corpus)
    pools = {
        subset: np.array([row for row, document in enumerate(corpus) if document["subset"] == subset])
        for subset in {document["subset"] for document in corpus}
    }
    cases = []
    for query in records("pir/queries.jsonl"):
        case = share(query["query"], names, frozenset(query["gold"]), pools[query["subset"]])
        some = case._replace(worth=lambda picks, found=case.worth: float(found(picks) > 0))
        cases.append(case if every else some)
    measure = "every right document found" if every else "a right document found"
    return Regime([document["text"] for document in corpus], cases, measure)


def perspectrum() -> Regime:
    """Debated claims and perspectives on them, in clusters of the same meaning: the answer is one of each cluster."""
    pool = records("perspectrum/perspectives.jsonl")
    claims = draw(records("perspectrum/claims.jsonl"))
    clusters_of: dict[object, set[object]] = {}
    for claim in claims:
        for number, cluster in enumerate(claim["clusters"]):
            for name in cluster["perspective_ids"]:
                clusters_of.setdefault(name, set()).add((claim["id"], number))
    parts_of = [frozenset(clusters_of.get(perspective["id"], ())) for perspective in pool]
    cases = [
        share(claim["claim"], parts_of, frozenset((claim["id"], number) for number in range(len(claim["clusters"]))))
        for claim in claims
    ]
    return Regime([perspective["text"] for perspective in pool], cases, "meanings found")


def ambient() -> Regime:
    """Ambiguous queries of one to three words, and the meanings in their 100 search results."""
    documents = records("ambient/documents.jsonl")
    meanings = [frozenset(document["subtopics"]) for document in documents]
    cases = []
    for topic in records("ambient/topics.jsonl"):
        rows = np.array([row for row, document in enumerate(documents) if document["topic_id"] == topic["id"]])
        cases.append(share(topic["query"], meanings, frozenset().union(*(meanings[row] for row in rows)), rows))
    texts = [f"{document['title']}. {document['snippet']}" for document in documents]
    return Regime(texts, cases, "meanings found", names=[document["title"] for document in documents])


def argkp() -> Regime:
    """Topics of debate, and arguments of which many make the same point in other words."""
    arguments = records("argkp/arguments.jsonl")
    points_of = [frozenset(argument["key_points"]) for argument in arguments]
    cases = [
        share(topic["query"], points_of, frozenset(topic["key_points"])) for topic in records("argkp/topics.jsonl")
    ]
    return Regime([argument["text"] for argument in arguments], cases, "key points covered")


def company(folder: str, least: int = 1) -> Regime:
    """Documents of a company, and questions with at least ``least`` right texts: the share of these among the picks."""
    documents = records(f"{folder}/docs.jsonl")
    questions = [question for question in records(f"{folder}/queries.jsonl") if len(question["gold"]) >= least]
    parts_of = singles(documents)
    cases = [share(question["text"], parts_of, frozenset(question["gold"])) for question in draw(questions)]
    names = [document["title"] for document in documents] if "title" in documents[0] else None
    return Regime([document["text"] for document in documents], cases, "right texts found", names=names)


def examples(items: list[dict], answer: str, parts: Callable[[str], frozenset[object]], own: bool) -> Regime:
    """Examples for a prompt: the share of the parts of a question's answer that the answers of the picks contain.

    ``own``: every item is a question, with the others as its corpus. Otherwise the last 500 items are the questions.
    """
    corpus = items if own else items[:-QUERIES]
    found = [parts(item[answer]) for item in corpus]
    cases = []
    for item in draw(items) if own else items[-QUERIES:]:
        wanted = parts(item[answer])
        if wanted:
            others = np.array([row for row, other in enumerate(corpus) if other["question"] != item["question"]])
            cases.append(share(item["question"], found, wanted, None if len(others) == len(corpus) else others))
    return Regime([item["question"] for item in corpus], cases, "parts of the answer covered", (2, 4, 8))


def calls_and_nestings(program: str) -> frozenset[object]:
    """The functions of a FunQL program and the pairs of a function and one directly inside it."""
    return _nested(re.findall(r"([a-z_0-9]+)\(|(\))", program))


def intents_and_slots(form: str) -> frozenset[object]:
    """The intents and slots of a logical form of MTOP, and the pairs of one and one directly inside it."""
    return _nested(re.findall(r"\[((?:IN|SL):\w+)|(\])", form))


def _nested(brackets: list[tuple[str, str]]) -> frozenset[object]:
    """The names of brackets that open, and the pairs of one and one directly inside it."""
    parts: set[object] = set()
    outer: list[str] = []
    for name, closing in brackets:
        if closing:
            outer.pop()
            continue
        parts |= {name} | ({(outer[-1], name)} if outer else set())
        outer.append(name)
    return frozenset(parts)


def commands_and_options(line: str) -> frozenset[object]:
    """The commands of a shell line, and each option with its command."""
    found: set[object] = set()
    for part in re.split(r"[|;&()`]+", line):
        words = part.split()
        if words:
            found |= {words[0]} | {(words[0], word) for word in words[1:] if re.fullmatch(r"--?[A-Za-z][\w-]*", word)}
    return frozenset(found)


def mtop() -> list[dict]:
    items = records("mtop/mtop.jsonl")
    return [item for item in items if item["split"] == "train"][::4] + draw(
        [item for item in items if item["split"] == "test"]
    )


def nl2bash() -> list[dict]:
    items = records("nl2bash/nl2bash.jsonl")[::3]
    order = np.random.default_rng(SEED).permutation(len(items))
    return [items[row] for row in order]


def is_development(question: str) -> bool:
    """Whether the question belongs to the half on which choices are made."""
    return hashlib.sha256(question.encode()).digest()[0] % 2 == 0


def development_half(cases: Sequence[Case]) -> np.ndarray:
    """For each case whether its question belongs to the half on which choices are made."""
    return np.array([is_development(case.question) for case in cases])


def test_half(regime: Regime) -> Regime:
    """The regime with the questions on which nothing was chosen."""
    return regime._replace(cases=[case for case in regime.cases if not is_development(case.question)])


def embed_regime(regime: Regime, model: str = MINILM) -> tuple[np.ndarray, np.ndarray]:
    return embed(regime.texts, model), embed([case.question for case in regime.cases], model)


def nearest(case: Case, query: np.ndarray, vectors: np.ndarray, size: int) -> np.ndarray:
    """The rows of the candidates with the highest cosine."""
    rows = case.rows(len(vectors))
    return rows[best(vectors[rows] @ query, size)]


def without_copies(regime: Regime) -> Regime:
    """The regime in which no two candidates have the same text, as in the adapters. A pick stands for its copies."""
    copies: dict[str, list[int]] = {}
    for row, text in enumerate(regime.texts):
        copies.setdefault(text, []).append(row)
    first = np.array([copies[text][0] for text in regime.texts])

    def merged(case: Case) -> Case:
        rows = case.rows(len(first))
        pool = rows[np.sort(np.unique(first[rows], return_index=True)[1])]
        return case._replace(
            pool=pool, worth=lambda picks: case.worth([row for p in picks for row in copies[regime.texts[p]]])
        )

    return regime._replace(cases=list(map(merged, regime.cases)))


def several_steps(name: str, folder: str) -> dict[str, tuple[Callable[[], Regime], tuple[str, ...]]]:
    files = (f"{folder}/passages.jsonl", f"{folder}/questions.jsonl")
    return {
        f"{name}, paragraphs": (lambda: steps(folder), files),
        f"{name}, overlapping windows": (lambda: steps(folder, windows=True), files),
    }


def of_company(folder: str, least: int = 1) -> tuple[Callable[[], Regime], tuple[str, ...]]:
    return lambda: company(folder, least), (f"{folder}/docs.jsonl", f"{folder}/queries.jsonl")


COMPANIES: dict[str, tuple[Callable[[], Regime], tuple[str, ...]]] = {
    "MetaTool": of_company("metatool"),
    "Claude documentation": of_company("anthropic_docs"),
    "code of nine projects": of_company("anthropic_code"),
    "PrivacyQA": of_company("privacy_qa"),
    "LiHua-World": of_company("lihua"),
    "chunks of five corpora": of_company("chunking"),
    "ObliQA": of_company("obliqa", least=2),
}
# Further kinds of corpora and questions.
OTHER_KINDS: dict[str, tuple[Callable[[], Regime], tuple[str, ...]]] = {
    "Seal-Tools": of_company("seal_tools_dev"),
    "StableToolBench": of_company("stabletoolbench"),
    "FeTaQA": of_company("fetaqa_dev"),
    "PubMedQA": of_company("pubmedqa"),
    "DSTC11": of_company("dstc11_dev"),
}
PIR = ("pir/corpus.jsonl", "pir/queries.jsonl")
REGIMES: dict[str, tuple[Callable[[], Regime], tuple[str, ...]]] = {
    **several_steps("HotpotQA", "hotpotqa"),
    **several_steps("HotpotQA dev", "hotpotqa_dev"),
    **several_steps("2WikiMultihopQA", "2wiki"),
    "StrategyQA": (strategyqa, ("strategyqa/facts.jsonl", "strategyqa/questions.jsonl")),
    "SciFact": (scifact, ("scifact/corpus.jsonl", "scifact/claims.jsonl")),
    "OpenBookQA facts": (openbookqa, ("openbookqa/facts.jsonl", "openbookqa/questions.jsonl")),
    "PIR": (lambda: pir(every=False), PIR),
    "PIR, paraphrases": (lambda: pir(every=True), PIR),
    "Perspectrum": (perspectrum, ("perspectrum/perspectives.jsonl", "perspectrum/claims.jsonl")),
    "Ambient": (ambient, ("ambient/documents.jsonl", "ambient/topics.jsonl")),
    "ArgKP": (argkp, ("argkp/arguments.jsonl", "argkp/topics.jsonl")),
    "GeoQuery": (
        lambda: examples(records("geoquery/geoquery.jsonl"), "funql", calls_and_nestings, own=True),
        ("geoquery/geoquery.jsonl",),
    ),
    "MTOP": (lambda: examples(mtop(), "logical_form", intents_and_slots, own=False), ("mtop/mtop.jsonl",)),
    "NL2Bash": (lambda: examples(nl2bash(), "bash", commands_and_options, own=False), ("nl2bash/nl2bash.jsonl",)),
    **COMPANIES,
    **OTHER_KINDS,
}
WINDOWS = tuple(name for name in REGIMES if name.endswith("windows"))
# The rows of the summary: kinds of corpus and question, each with its tasks. Windows are variants of the paragraphs.
KINDS: dict[str, tuple[str, ...]] = {
    "documents of companies": tuple(COMPANIES),
    "questions of several steps": (
        "HotpotQA, paragraphs",
        "HotpotQA dev, paragraphs",
        "2WikiMultihopQA, paragraphs",
        "StrategyQA",
    ),
    "one right document": ("SciFact", "OpenBookQA facts", "PIR"),
    "every paraphrase wanted": ("PIR, paraphrases",),
    "several meanings or opinions": ("Perspectrum", "Ambient", "ArgKP"),
    "examples for a prompt": ("GeoQuery", "MTOP", "NL2Bash"),
    "tools of two catalogues": ("Seal-Tools", "StableToolBench"),
    "rows of tables": ("FeTaQA",),
    "sections of abstracts": ("PubMedQA",),
    "reviews": ("DSTC11",),
}
