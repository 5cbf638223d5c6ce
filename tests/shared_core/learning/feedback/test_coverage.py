from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from shared_core import InvalidInputError, InvalidParameterError
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
        (F, [F], 1.0),
        (F, [WORDS], 0.0),
        (F, [G], 1 / 3),
        (F, [G, H], 2 / 3),
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


def test_a_pickled_feedback_is_the_same() -> None:
    feedback = CoverageFeedback("bash", programs)
    pair = ({"bash": "ls | wc -l"}, [{"bash": "cat x | wc -l"}])
    share = feedback(*pair)
    again = pickle.loads(pickle.dumps(feedback))
    assert again(*pair) == share == 1 / 2
    assert again.fingerprint == feedback.fingerprint


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
    ("pair", "words"),
    [
        (
            (WORDS, [F]),
            r"pair 1, query item: its 'answer', 'Paris', has no symbols by .*structural_symbols, so it has no",
        ),
        (({"q": 1}, [F]), r"pair 1, query item has no 'answer'; it has \['q'\]. Name the key of its answer"),
        ((F, [F, {}]), r"pair 1, item 1 of the subset has no 'answer'; it has \[\]"),
        ((F, [{"answer": None}]), r"pair 1, item 0 of the subset: its 'answer' is None, not a text"),
        ((F, [{"answer": ["f(x)"]}]), r"item 0 of the subset: its 'answer' is \['f\(x\)'\], not a text"),
        ((F, ["f(x)"]), r"item 0 of the subset has no 'answer'; it has 'f\(x\)'"),
    ],
)
def test_what_cannot_be_scored_is_named(pair: Any, words: str) -> None:
    feedback = CoverageFeedback()
    for _ in range(2):
        with pytest.raises(InvalidInputError, match=words):
            feedback.score([(F, [G]), pair])
    with pytest.raises(InvalidInputError, match=words.removeprefix("pair 1, ")):
        feedback(*pair)


def test_the_error_of_a_function_names_the_text() -> None:
    def fails(text: str) -> list[str]:
        raise KeyError(text)

    with pytest.raises(KeyError) as caught:
        CoverageFeedback(symbols=fails)(F, [])
    assert "'f(g(x))'" in caught.value.__notes__[0]


@pytest.mark.parametrize("wrong", [{"answer": 3}, {"symbols": "split"}])
def test_invalid_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
        CoverageFeedback(**wrong)


# --- score_all ------------------------------------------------------------------------------------

PAIRS: list[Any] = [({"n": 1}, [{}]), ({"n": 2}, [{}, {}])]


def test_a_function_is_called_for_each_pair_in_turn() -> None:
    found = score_all(lambda query, subset: np.float32(query["n"] / len(subset)), PAIRS)
    assert found == [1.0, 1.0]
    assert all(type(value) is float for value in found)
    assert score_all(lambda query, subset: 0, []) == []


class Batched:
    def __init__(self, values: Any) -> None:
        self.values = values

    def __call__(self, query: Any, subset: Any, /) -> float:
        raise AssertionError("one by one")

    def score(self, pairs: Any) -> Any:
        return self.values


def test_score_is_preferred() -> None:
    assert score_all(Batched(np.array([0.5, 2])), PAIRS) == [0.5, 2.0]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, "1", None, True, np.array([1.0]), 1j, b"1"], ids=repr)
def test_a_result_that_is_not_a_finite_number_is_named(value: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"feedback for pair 1 is .* finite number"):
        score_all(Batched([1, value]), PAIRS)
    with pytest.raises(InvalidInputError, match="feedback for item 7 is"):
        score_all(lambda query, subset: value if query["n"] == 2 else 1, PAIRS, ["item 3", "item 7"])


def test_wrong_lengths_and_objects_that_are_not_a_feedback_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="3 results for 2 pairs"):
        score_all(Batched([1, 2, 3]), PAIRS)
    with pytest.raises(InvalidParameterError, match="1 names for 2 pairs"):
        score_all(Batched([1, 2]), PAIRS, ["one"])
    with pytest.raises(InvalidParameterError, match="feedback must be a function"):
        score_all(3, PAIRS)  # type: ignore[arg-type]


def test_the_exception_of_a_function_is_passed_on_with_the_name_of_the_pair() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        score_all(lambda query, subset: 1 / (query["n"] - 2), PAIRS, ["item 3", "item 7"])
    assert "item 7" in caught.value.__notes__[0]
