"""Constraints as settings of a comparison, against ``select``."""

import copy
from typing import Any

import numpy as np
import pytest

from shared_core import Coverage
from shared_core.errors import InvalidParameterError
from shared_core.evaluation.compare import compare
from shared_core.evaluation.results import Comparison
from shared_core.evaluation.settings import Adapted, named, parse_setting
from tests.embedding import corpus, embed

TEXTS = [text for text, _ in corpus()][:30]
VECTORS = np.array([embed(text) for text in TEXTS])
SOURCES = [str(data["topic"]) for _, data in corpus()][:30]
DOCUMENTS: list[dict[str, Any]] = [
    {"id": f"d{i}", "text": text, "source": source} for i, (text, source) in enumerate(zip(TEXTS, SOURCES, strict=True))
]
QUESTIONS = ["hidden northern harbour engine", "old bread", "violin river"]


def compared(*lines: str, queries: Any = QUESTIONS, documents: Any = DOCUMENTS, **options: Any) -> Comparison:
    settings = [named("similarity"), *map(parse_setting, lines)]
    embedded = VECTORS, [embed(text) for text in QUESTIONS]
    return compare(documents, queries, embedded, **{"k": 5, "fetch_k": 30, "settings": settings} | options)


def picked(found: Comparison, label: str) -> list[list[int]]:
    """The numbers of the documents that a setting picks for each query."""
    at = [setting.label for setting in found.settings].index(label)
    return [[int(view.candidates[i].id[1:]) for i in view.picks[at]] for view in found.queries]


def cosines(question: str) -> Any:
    query = embed(question)
    return VECTORS @ query / np.linalg.norm(VECTORS, axis=1) / np.linalg.norm(query)


def test_sets_may_be_smaller_or_empty_which_a_note_says() -> None:
    every = [np.sort(cosines(question))[::-1] for question in QUESTIONS]
    # One question has documents above the threshold, and at least one has none.
    best = max(every, key=lambda one: float(one[1]))
    threshold = round(float(best[1]) - 1e-4, 4)
    queries = [{"text": text, "gold": ["d0"]} for text in QUESTIONS]
    found = compared(f"similarity score_threshold={threshold}", queries=queries)
    rows = [np.flatnonzero(cosines(question) >= threshold) for question in QUESTIONS]
    assert [sorted(one) for one in picked(found, found.settings[1].label)] == [one.tolist() for one in rows]
    sizes = [len(one) for one in rows]
    assert min(sizes) == 0 < max(sizes) < 5
    relevance = [cosines(question)[one].sum() / max(len(one), 1) for question, one in zip(QUESTIONS, rows, strict=True)]
    assert found.values[1, "relevance"].mean == pytest.approx(np.mean(relevance), abs=1e-6)
    assert found.values[1, "precision"].mean == np.mean([(0 in one) / max(len(one), 1) for one in rows])
    [note] = [note for note in found.notes if note.startswith("Some pick fewer than 5 texts.")]
    assert f"similarity score_threshold={threshold} {np.mean(sizes):.1f}" in note
    assert not any("fewer than" in note for note in compared("vrsd").notes)


@pytest.mark.parametrize("without", [None, float("nan"), " "])
def test_a_document_without_a_source_is_a_source_of_its_own(without: Any) -> None:
    documents = [{**record, "source": "one" if i < 4 else without} for i, record in enumerate(DOCUMENTS)]
    label = "similarity max_per_source=1"
    found = compared(label, documents=documents)
    for question, rows in zip(QUESTIONS, picked(found, label), strict=True):
        nearest = np.argsort(-cosines(question), kind="stable").tolist()
        first = next(row for row in nearest if row < 4)
        assert rows == [row for row in nearest if row >= 4 or row == first][:5]
    assert not any("source" in note for note in found.notes)
    unknown = compared(label, documents=[{**record, "source": without} for record in DOCUMENTS])
    assert any(f"no effect on {label}" in note for note in unknown.notes)


# --- settings as text -------------------------------------------------------------------------------------------------


def test_a_line_of_text_is_what_the_label_says() -> None:
    for line in (
        "mmr lambda_mult=0.7 keyword_search=True",
        "coverage max_per_source=2 drop_near_duplicates=0.9",
        "vrsd refine=True",
    ):
        assert parse_setting(line)[0].label == line
    setting, selector = parse_setting("coverage  budget=100")
    assert copy.deepcopy(selector) == selector == Adapted(Coverage(), budget=100)
    assert setting == named("coverage", budget=100)[0]
    assert parse_setting("ndpp relevance_mapping=linear")[1] == named("ndpp", relevance_mapping="linear")[1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("coverge", "did you mean 'coverage'"),
        ("mmr lambda_mul=0.7", "did you mean 'lambda_mult'"),
        ("mmr 0.7", "'0.7' must be parameter=value"),
        ("mmr lambda_mult=1 lambda_mult=0", "'lambda_mult=0' must be parameter=value, each parameter once"),
        (f"coverage max_per_source={10**20}", r"max_per_source must be an integer below 2"),
        ("coverage keyword_search=2", "keyword_search must be True or False, got 2"),
        ("ndpp kernel=nowhere.safetensors", "No such file .*nowhere"),
    ],
)
def test_a_line_that_is_wrong_is_refused(line: str, message: str) -> None:
    with pytest.raises(InvalidParameterError, match=f"setting '{line}': .*{message}"):
        parse_setting(line)
