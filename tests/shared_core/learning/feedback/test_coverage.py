from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from shared_core import InvalidInputError
from shared_core._validation import quoted
from shared_core.learning.feedback.coverage import CoverageFeedback, score_all

F, G, H = ({"answer": text} for text in ("f(g(x))", "g(h(x))", "h(f(x), g(y))"))
WORDS = {"answer": "Paris"}


def length(text: str) -> list[str]:
    return [text[:i] for i in range(len(text))]


# --- coverage -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "subset", "share"),
    [
        (F, [], 0.0),
        (F, [G], 1 / 3),
        (F, [G, {"answer": "f(g(y), z)"}], 1.0),
        (H, [F, G], 3 / 5),
        (H, [F, F, WORDS], 2 / 5),
    ],
)
def test_the_share_counted_by_hand(query: Any, subset: Any, share: float) -> None:
    assert CoverageFeedback()(query, subset) == pytest.approx(share, abs=1e-15)


def programs(text: str) -> list[str]:
    """The programs of a shell pipeline."""
    return [part.split()[0] for part in text.split("|")]


def test_one_call_for_many_pairs_equals_single_calls_and_the_input_is_unchanged() -> None:
    pairs = [(F, [G]), (G, [F, H]), (H, (F, G)), (F, [])]
    before = copy.deepcopy(pairs)
    feedback = CoverageFeedback()
    found = feedback.score(pairs)
    assert found == [CoverageFeedback()(*pair) for pair in pairs] == score_all(feedback, pairs)
    assert all(type(value) is float for value in found)
    assert pairs == before


def test_key_and_function_may_be_the_users_and_a_text_is_read_once() -> None:
    seen: list[str] = []

    def words(text: str) -> list[str]:
        seen.append(text)
        return text.split()

    feedback = CoverageFeedback("reply", words)
    pairs = [({"reply": "a b c d"}, [{"reply": "d a"}, {"reply": "a"}])] * 3
    assert feedback.score(pairs) == [0.5] * 3
    assert seen == ["a b c d", "d a", "a"]


def test_fingerprints_differ_between_functions_and_keys() -> None:
    made = [CoverageFeedback(), CoverageFeedback("bash"), CoverageFeedback(symbols=programs)]
    made += [CoverageFeedback(symbols=length), CoverageFeedback(symbols=str.split)]
    prints = [feedback.fingerprint for feedback in made]
    assert len(set(prints)) == len(prints)
    assert "CoverageFeedback" in prints[0]
    assert "shared_core.learning.feedback.symbols.structural_symbols" in prints[0]
    assert "'answer'" in prints[0]
    assert "bash" in prints[1]
    assert prints[0] == CoverageFeedback().fingerprint


@pytest.mark.parametrize(
    ("pair", "word"),
    [
        ((WORDS, [F]), "no symbols"),
        (({"q": 1}, [F]), "query item: its 'answer' is None"),
        ((F, [F, {}]), "item 1 of the subset"),
        ((F, [{"answer": ["f(x)"]}]), "not a text"),
    ],
)
def test_what_cannot_be_scored_is_named(pair: Any, word: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"pair 1, .*{word}"):
        CoverageFeedback().score([(F, [G]), pair])


# --- score_all ------------------------------------------------------------------------------------

PAIRS: list[Any] = [({"n": 1}, [{}]), ({"n": 2}, [{}, {}])]


class Batched:
    def __init__(self, values: Any) -> None:
        self.values = values

    def __call__(self, query: Any, subset: Any, /) -> float:
        raise AssertionError("one by one")

    def score(self, pairs: Any) -> Any:
        return self.values


@pytest.mark.parametrize("value", [np.nan, -np.inf, None, [1.0], 10**400], ids=quoted)
def test_a_result_that_is_not_a_finite_number_is_named(value: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"feedback for pair 1 is .* finite number"):
        score_all(Batched([1, value]), PAIRS)
    with pytest.raises(InvalidInputError, match="feedback for item 7 is"):
        score_all(lambda query, subset: value if query["n"] == 2 else 1, PAIRS, ["item 3", "item 7"])


def test_all_pairs_are_scored_in_one_call_if_the_feedback_can() -> None:
    assert score_all(Batched(np.array([0.5, 2])), PAIRS) == [0.5, 2.0]
    with pytest.raises(InvalidInputError, match="3 results for 2 pairs"):
        score_all(Batched([1, 2, 3]), PAIRS)
