"""benchmarks/reranker.py on a corpus made up here, and with a language model of few weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import Gemma3ForCausalLM, Gemma3TextConfig

from benchmarks import reranker
from benchmarks.regimes_methods import DEFAULT, SIMILARITY
from benchmarks.regimes_tasks import Regime, share
from benchmarks.reranker import ALONE, BY_WORDS, GIVEN, METHODS_HERE, Pair, keep, likelihood, measure

BOS = 1


def encode(texts: str | list[str], add_special_tokens: bool = True, max_length: int | None = None, **_: Any) -> Any:
    """A token for each character, after one for the start."""
    if isinstance(texts, str):
        return {"input_ids": encode([texts], add_special_tokens)["input_ids"][0]}
    rows = [[BOS] * add_special_tokens + [ord(letter) % 90 + 2 for letter in text] for text in texts]
    return {"input_ids": [row[:max_length] for row in rows]}


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Any:
    torch.manual_seed(0)
    config = Gemma3TextConfig(
        vocab_size=92, hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=8, layer_types=["sliding_attention", "full_attention"],
    )  # fmt: skip
    made: Any = Gemma3ForCausalLM(config)
    made.eval()
    monkeypatch.setattr(reranker, "load_gemma", lambda: (made, encode, made.get_output_embeddings().weight))
    return made


def test_the_likelihood_is_that_of_the_question_after_its_text(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # Batches of several texts, and of one with several questions.
    monkeypatch.setattr(reranker, "BATCH_TOKENS", 60)
    monkeypatch.setattr(reranker, "LOGITS", 7)
    monkeypatch.setattr(reranker, "MOST_TOKENS", 40)
    texts, questions = ["a lamp", "the red chair", "b" * 70], ["lamp?", "where is a chair?"]
    pairs = [(question, text) for question in questions for text in texts]
    for pair, found in zip(pairs, likelihood(pairs), strict=True):
        before = [
            *encode([f"Passage: {pair[1]}"], max_length=40)["input_ids"][0],
            *encode("\nQuestion:", False)["input_ids"],
        ]
        after = encode(f" {pair[0]}", False)["input_ids"]
        with torch.inference_mode():
            logs = model(torch.tensor([before + after])).logits[0].log_softmax(-1)
        expected = np.mean([logs[len(before) + place - 1, token] for place, token in enumerate(after)])
        assert found == pytest.approx(expected, abs=1e-5)


def test_what_was_scored_is_kept_when_a_run_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reranker, "KEPT_AT_ONCE", 2)
    asked: list[Pair] = []

    def score(pairs: list[Pair]) -> np.ndarray:
        if len(asked) == 2:
            raise KeyboardInterrupt
        asked.extend(pairs)
        return np.array([float(len(text)) for _, text in pairs], np.float32)

    pairs = [("a question", text) for text in ("ccc", "a", "bb")]
    path = tmp_path / "a folder" / "scores.jsonl"
    with pytest.raises(KeyboardInterrupt):
        keep(score, path)(pairs)
    assert keep(score, path)(pairs[1:]) == [1, 2]
    asked.clear()
    assert keep(score, path)(pairs) == [3, 1, 2]
    assert asked == pairs[:1]


def test_the_scores_rank_the_candidates_and_are_the_relevance_of_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    # Text i is the i-th nearest to the question. Text 60 has its only word, text 30 the highest near score.
    angles = np.linspace(0.1, 1.5, 120)
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    texts = ["needle" if row == 60 else f"straw {row}" for row in range(120)]
    monkeypatch.setattr(reranker, "embed_regime", lambda regime: (vectors, np.array([[1.0, 0.0]], np.float32)))
    scores = {"needle": 9.0, "straw 30": 8.0, "straw 0": -7.0}

    def found(gold: int) -> set[str]:
        case = share("needle", [frozenset([row]) for row in range(120)], frozenset([gold]))
        cell = measure("a task", Regime(texts, [case], "found"), lambda pairs: [scores.get(t, -8.0) for _, t in pairs])
        assert [*cell.worth] == [5, 10]
        return {method for method, values in cell.worth[5].items() if values[0]}

    pooled = {method + BY_WORDS for method in (DEFAULT, ALONE, GIVEN)}
    assert found(60) == pooled
    assert {ALONE, GIVEN, ALONE + BY_WORDS, GIVEN + BY_WORDS} <= found(30) <= {*METHODS_HERE}
    assert {SIMILARITY, DEFAULT, ALONE} <= found(0)


def test_a_scorer_is_named_by_its_module() -> None:
    assert reranker.load("math:sqrt")(4) == 2  # type: ignore[arg-type]
    assert reranker.load("pathlib:Path.cwd")() == Path.cwd()  # type: ignore[call-arg]
