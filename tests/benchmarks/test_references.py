"""benchmarks/references.py on a corpus made up here."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from benchmarks import references
from benchmarks.references import ARRAYS, Corpus, from_arrays, with_langchain
from benchmarks.references_corpora import MISLEADING
from benchmarks.regimes_tasks import Regime, complete, share

NAMES = ["Forbidden Ground", "Ann Lee", "Perth", "Old Harbour", "Ann Lee Street"]
TEXTS = [
    "Forbidden Ground is a film of 1958 that was directed by Ann Lee.",
    "She was born in 1921 and studied law.",
    "A city in the west.",
    "A film about ships, made in 1960.",
    "A street in the north.",
]
QUESTION = "When was the director of the film Forbidden Ground born?"


def embed(texts: Sequence[str], model: str) -> np.ndarray:
    """The film is nearest to the question; the other texts are equally far."""
    rows = [
        np.eye(6)[TEXTS.index(text)] + (3 if text == TEXTS[0] else 1) * np.eye(6)[5] for text in texts if text in TEXTS
    ]
    rows += [np.eye(6)[5] for text in texts if text not in TEXTS]
    return np.array([row / np.linalg.norm(row) for row in rows], np.float32)


@pytest.fixture
def corpus(monkeypatch: pytest.MonkeyPatch) -> Corpus:
    monkeypatch.setattr(references, "embed", embed)
    monkeypatch.setattr(references, "KS", (2, 5))
    case = complete(share(QUESTION, [frozenset([row]) for row in range(5)], frozenset([0, 1])))
    regime = Regime(TEXTS, [case], "everything found", names=NAMES)
    return Corpus(regime, embed(TEXTS, ""), [case], embed([QUESTION], ""))


def test_a_reference_is_followed_on_arrays_and_through_both_frameworks(corpus: Corpus) -> None:
    assert from_arrays(corpus, "references")(0, 2) == with_langchain(corpus, fetch_k=5)(0, 2) == [0, 1]
    assert references.with_llamaindex(corpus, fetch_k=5)(0, 2) == [0, 1]
    found = {name: references.measure(corpus, from_arrays(corpus, name))[0].tolist() for name in ARRAYS}
    assert found["references"] == found["references, 200"] == [100, 100]


@pytest.mark.parametrize("name", MISLEADING)
def test_each_question_can_be_answered(name: str) -> None:
    regime, is_on_topic = MISLEADING[name]()
    everything = list(range(len(regime.texts)))
    assert regime.names is not None
    assert len(regime.texts) == len(regime.names)
    for number, case in enumerate(regime.cases):
        assert case.worth(everything) == 1
        assert 2 <= sum(is_on_topic(number, row) for row in everything) <= 20
