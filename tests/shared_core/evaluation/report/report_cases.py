"""Comparisons for the tests of the report, with invented figures."""

from __future__ import annotations

import random
from dataclasses import fields, is_dataclass, replace
from typing import Any

from shared_core.evaluation.diagnosis import Diagnosis, Finding
from shared_core.evaluation.results import (
    CandidateView,
    Comparison,
    CorpusFacts,
    Difference,
    Estimate,
    Measure,
    QueryChange,
    QueryView,
    Recommendation,
    Replacement,
    Size,
)
from shared_core.evaluation.settings import named

HOSTILE = (
    "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"
    " <!-- \" ' & &lt; {{ 7 * 7 }} 🦊 שלום עולם \u202e\u2028 end"
)
_TEXT = (
    "the store keeps each vector beside its text and hands both back when a filter matches so that nothing is embedded "
    "again for a second time while a reader compares what two methods would have chosen from fifty candidates"
)
_WORDS = _TEXT.split()
_RARE = ("filter", "fifty")
# Those of a selector that knows them, for the setting vrsd refine=True.
REASONS = tuple(f"relevance 0.{5 - rank} ({90 - rank} %); words: filter ({10 + rank} %)" for rank in range(5))
_MMR = [("mmr", {"lambda_mult": i / 10}) for i in range(1, 10)]
_NDPP = [("ndpp", {"temperature": t}) for t in (0.1, 0.25, 0.5)]
SETTINGS = tuple(
    named(name, **parameters)[0]
    for name, parameters in (
        ("similarity", {}),
        *_MMR,
        ("vrsd", {}),
        ("vrsd", {"refine": True}),
        ("ndpp", {"relevance_mapping": "linear"}),
        *_NDPP,
    )
)
MEASURES = (
    Measure("relevance", "relevance", "Mean cosine of the picks with their query.", True, "nothing"),
    Measure("redundancy", "redundancy", "Mean cosine between the picks of one query.", False, "nothing"),
    Measure("cos(sum, query)", "sum_cosine", "Cosine of the sum of the picks with the query.", True, "nothing"),
    Measure("recall@5", "R@5", "Share of the gold texts that were picked.", True, "gold"),
    Measure("nDCG@5", "nDCG@5", "Gold texts picked early count for more.", True, "gold"),
    Measure("subtopic recall@5", "StRecall@5", "Share of the subtopics that the picks cover.", True, "subtopics"),
)
_ADVICE = Recommendation(
    10,
    5,
    "R@5",
    (
        "Take vrsd: its recall@5 is 0.552, against 0.541 for mmr lambda_mult=0.5.",
        "The difference between them may be chance; the one to plain similarity is not.",
        "3 texts of vrsd find what 10 of similarity find.",
        "'q4' loses most.",
    ),
    0.0004,
)


def _query(number: int, candidates: int, rng: random.Random) -> QueryView:
    views = []
    for rank in range(candidates):
        text = " ".join(rng.choices(_WORDS, k=rng.randint(8, 70)))
        cosine = 0.62 - 0.008 * rank
        # The third query asks for two parts. Similarity covers the first one, vrsd covers the second one.
        parts = {1: (0,), 8: (1,)}.get(rank, ()) if number == 3 else ()
        identity = f"docs/page-{number:02}.md#{rank}"
        views.append(CandidateView(identity, text, cosine, parts=parts))
    picks = {}
    for position in range(len(SETTINGS)):
        reach = 5 if position == 0 else 6 + position
        picks[position] = (0, *sorted(rng.sample(range(1, min(reach, candidates)), 4)))
    gold = (views[0].id, views[4].id, views[7].id, "docs/elsewhere.md#0")
    text = f"How does query {number} {' '.join(rng.choices(_WORDS, k=6))}, and what does it cost?"
    asked = ("price", "speed") if number == 3 else ()
    more = asked, _RARE, {11: REASONS}
    return QueryView(f"q{number}", text, gold, tuple(views), picks, *more)


def _size(k: int) -> Size:
    values: dict[tuple[int, str], Estimate] = {}
    for position in range(len(SETTINGS)):
        found = 0.9 * k / (k + (3 if position else 8.7))
        values[position, "R@5"] = Estimate(found, found - 0.03, found + 0.03, 120)
        values[position, "precision"] = Estimate(found / k, found / k, found / k, 120)
    return Size(k, values, tuple(310.0 * k - 10 * position for position in range(len(SETTINGS))))


def comparison(queries: int = 12, candidates: int = 50) -> Comparison:
    """16 settings over 5 methods; the same call gives the same comparison."""
    rng = random.Random(9)
    values, differences = {}, {}
    for position in range(len(SETTINGS)):
        relevance, redundancy = 0.37 + 0.01 * position, 0.6 - 0.02 * position
        gold = relevance - 0.25 * redundancy
        means = (relevance, redundancy, relevance + 0.12, gold + 0.16, gold + 0.1, 0.9 - redundancy / 2)
        for measure, mean in zip(MEASURES, means, strict=True):
            half = rng.uniform(0.02, 0.05)
            count = 44 if measure.needs == "subtopics" else 120
            values[position, measure.key] = Estimate(mean, mean - half, mean + 0.9 * half, count)
            gap = mean - values[0, measure.key].mean
            worst = f"q{1 + position * 3}" if position % 5 else None
            loss = 0.05 + half if worst else 0.0
            differences[position, measure.key] = Difference(
                gap, gap - half / 2, gap + half / 2, 0.04 * (position % 7), 0.01 * (position % 6), loss, 2 * loss, worst
            )
    return Comparison(
        "Handbook of the store, spring",
        CorpusFacts(3412, 120, "all-MiniLM-L6-v2", 5, 50, {"python": "3.11.2", "numpy": "2.4.6"}),
        SETTINGS,
        MEASURES,
        values,
        differences,
        _ADVICE,
        tuple(_query(number, candidates, rng) for number in range(1, queries + 1)),
        (QueryChange("q2", 1.0, 0.25), QueryChange("q4", 0.5, 0.25), QueryChange("q3", 0.25, 0.75)),
        tuple(_size(k) for k in (2, 3, 5, 8, 10)),
        notes=("Two lines of queries.jsonl could not be read: 17 and 203.", "x" * 3000),
        questions={"q16": "What does the sixteenth question cost?"},
    )


def only_similarity(found: Comparison) -> Comparison:
    """One setting, one query, no gold, one pick each: no redundancy and no winner."""
    query = replace(found.queries[0], gold=(), picks={0: (0,)})
    return replace(
        found,
        corpus=replace(found.corpus, documents=None, queries=1, k=1),
        settings=found.settings[:1],
        measures=found.measures[:1],
        values={(0, "relevance"): Estimate(0.5, 0.5, 0.5, 1)},
        differences={(0, "relevance"): found.differences[0, "relevance"]},
        recommendation=Recommendation(None, None, None, ("Without gold texts no winner can be named.",), None, None),
        queries=(query,),
        changes=(),
        sizes=(),
        notes=(),
    )


def diagnosis(text: str = "Texts that are stored more than once") -> Diagnosis:
    """Findings with ``text`` in every place."""
    findings = (Finding("copies", text, 0.34, f"34 % of 200 texts, {text}"), Finding("link", text, 0.0, "0 %"))
    return Diagnosis(text, 3412, 200, 50, findings)


def unjudged(found: Comparison) -> Comparison:
    """Without a deciding measure: what would change, and what there is to act on."""
    changed = tuple(Replacement(0.04 * i, 0.3 * i, (("q2", 3), ("q16", 1))[: i % 3]) for i in range(len(SETTINGS)))
    return replace(
        found,
        recommendation=Recommendation(None, None, None, ("No winner can be named.",), None, None),
        changes=(),
        replacements=changed,
        questions={"q2": found.queries[1].text},
    )


def hostile(found: Any) -> Any:
    """The comparison with ``HOSTILE`` at the start of every text; ``found`` may be a part of one."""
    if isinstance(found, str):
        return HOSTILE + found
    if isinstance(found, tuple):
        return tuple(map(hostile, found))
    if isinstance(found, dict):
        return {hostile(key) if isinstance(key, str) else key: hostile(value) for key, value in found.items()}
    if not is_dataclass(found):
        return found
    names = {field.name for field in fields(found)} - {"key", "needs", "measure", "method"}
    return replace(found, **{name: hostile(getattr(found, name)) for name in names})  # type: ignore[type-var]
