"""benchmarks/hippo2wiki.py on a corpus made up here."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from benchmarks import hippo2wiki
from benchmarks.hippo2wiki import PUBLISHED, ROWS, found_table, recall, store_of

TEXTS = ["Forbidden Ground is a film that was directed by Ann Lee.", "She was born in 1921.", "A city in the west."]
QUESTION = "When was the director of Forbidden Ground born?"


def embed(texts: Sequence[str], model: str) -> np.ndarray:
    """The film is nearest to the question, then the city. A name is its text."""
    rows = {QUESTION: [1, 0, 0.3], TEXTS[0]: [1, 0, 0], TEXTS[1]: [0, 1, 0], TEXTS[2]: [0, 0, 1]}
    texts = [text.split("\n")[-1] for text in texts]
    return np.array([rows.get(text, [0, 1, 0]) for text in texts], np.float32)


def test_the_share_of_the_right_passages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hippo2wiki, "embed", embed)
    monkeypatch.setattr(hippo2wiki, "K", 2)
    documents = [
        {"id": name, "title": name, "text": text}
        for name, text in zip(("Film", "Ann Lee", "Perth"), TEXTS, strict=True)
    ]
    question = {"text": QUESTION, "gold": ["Film", "Ann Lee"]}
    store = store_of(documents, hippo2wiki.Cached())
    found = {name: recall(ROWS[name](store), [question]) for name in ("similarity", "setselect, nothing set")}
    assert {name: shares.tolist() for name, shares in found.items()} == {
        "similarity": [50],
        "setselect, nothing set": [100],
    }
    rows = [line.split(" | ") for line in found_table(found, {"similarity": 0.01}).splitlines()[2:]]
    assert [row[1:] for row in rows[:2]] == [
        ["50.0", "0.0", "", "10 |"],
        ["100.0", "100.0", "+50.0 (+50.0 to +50.0)", " |"],
    ]
    assert len(rows) == 2 + len(PUBLISHED)
