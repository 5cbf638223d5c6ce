"""Why each pick is there: the words and values that it is the first to cover."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from shared_core import MMR, Candidates, Coverage
from shared_core.selection.reasons import explain
from shared_core.selection.route import Limits, select_set
from shared_core.selectors.registry import Selector
from shared_core.texts import Texts

TEXTS = [
    "A temporary file is deleted when it is closed.",
    "Temporary.",
    "A temporary file is deleted when it is closed.",
    "Deleted rows stay in the journal.",
    "The weather is fine.",
    "It rains.",
]
VALUES = ["docs", ["docs", "api"], "docs", None, ["faq", " "], np.array(["faq", "new", "api"])]


def told(
    question: str, selector: Selector, shown: tuple[int, ...] = (), values: Any = None, texts: Any = TEXTS
) -> dict[int, str]:
    """What is said about each pick, by its row, without the shares. No vector repeats another."""
    n = len(texts)
    candidates = Candidates(np.ones(n), np.eye(n), relevance=np.arange(n)[::-1], cover=values)
    split, asked = Texts(texts, refer=False), [question]
    limits = Limits(drop_copies=True)
    found = select_set(candidates, selector, n, question=asked, texts=split, shown=shown, limits=limits)
    # The order is that of the rows, because the weights are low.
    assert sorted(found.indices.tolist()) == found.indices.tolist()
    more = {"question": asked, "queries": asked, "texts": split, "shown": shown}
    said = explain(found, selector, **more)
    parts = [re.sub(r" \(\d+ %\)|^relevance [\d.]+(; )?", "", re.sub(r" \(\d+ %\)", "", one)) for one in said]
    return dict(zip(found.indices.tolist(), parts, strict=True))


LOW = Coverage(word_weight=0.2, cover_weight=0.2)


def test_a_reason_names_the_words_that_no_earlier_text_has_the_rarest_first() -> None:
    # The third text is left out as a copy. "is" stands in two texts, "weather" in one.
    words = told("Is the temporary file deleted, or rows? Snow", LOW)
    assert words == {
        0: "words: file, is, temporary, deleted",
        # It is shorter, so it covers its word better than the first text.
        1: "covers more",
        3: "words: rows, the",
        4: "covers more",
        5: "",
    }
    assert told("temporary rows", LOW, shown=(0,)) == {1: "covers more", 3: "words: rows", 4: "", 5: ""}
    many = "one two three four five six seven"
    assert told(many, LOW, texts=[many, "a", "b"])[0] == "words: one, two, three, four, five"


def test_an_exact_name_has_its_own_reason_and_single_letters_have_none() -> None:
    texts = ["Fiverr has the app's terms.", "The app's map.", "It's a map."]
    words = told('Does "Fiverr" show the app\'s map?', LOW, texts=texts)
    assert words == {0: "exact name: fiverr", 1: "words: map", 2: ""}


@pytest.mark.parametrize("selector", [MMR(lambda_mult=1), Coverage(word_weight=0, cover_weight=0)])
def test_what_a_selector_does_not_use_is_no_reason(selector: Selector) -> None:
    assert {*told("temporary rows", selector, values=VALUES).values()} == {""}


def test_a_reason_names_a_sub_question_once() -> None:
    rng = np.random.default_rng(7)
    queries, asked = rng.normal(size=(3, 8)), ["All of it?", "Who?", "When?"]
    candidates = Candidates(queries, queries[[1, 2, 0, 1]] + 0.1 * rng.normal(size=(4, 8)))
    found = Coverage().select(candidates, 4)
    assert found.serves is not None
    reasons = explain(found, Coverage(), question=asked, queries=asked)
    named = [re.findall(r"covers: (.*) \(", reason) for reason in reasons]
    first = [row not in found.serves[:i] for i, row in enumerate(found.serves.tolist())]
    expected = [
        [["the question", "Who?", "When?"][row]] if new else [] for row, new in zip(found.serves, first, strict=True)
    ]
    assert named == expected
    assert sum(map(len, named)) == len({*found.serves.tolist()}) > 1
