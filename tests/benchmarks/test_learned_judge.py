"""The judge of example sets, with a tiny language model, and the kernels that are learned from its feedback."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.learned.judge import END, Judge
from benchmarks.papers import _language_models
from shared_core.signals.language_models import Scored
from tests.shared_core.signals.completions_server import oracle

pytestmark = pytest.mark.usefixtures("one_torch_thread", "in_float32")

WORDS = ("tea", "rain", "What", "keeps", "well", "good", "for", "us")
ITEMS = [
    {"id": f"{a}-{b}", "question": f"{a} {b}?", "answer": f"{a}({b}(x))"} for a, b in itertools.product(WORDS, WORDS)
]


@pytest.fixture
def model(tiny_model: Path, in_float32: None) -> _language_models.LanguageModel:
    return replace(_language_models.from_transformers(tiny_model), batch_size=2)


@pytest.fixture
def judge(model: _language_models.LanguageModel, tmp_path: Path) -> Judge:
    return Judge(model, tmp_path / "verdicts.jsonl")


def prompt_of(item: dict[str, str], examples: list[dict[str, str]]) -> str:
    return "".join(f"{one['question']}\n{one['answer']}\n\n" for one in examples) + f"{item['question']}\n"


def test_log_p_is_that_of_the_answer_and_its_end(judge: Judge, loaded: tuple[Any, Any]) -> None:
    asked = [(ITEMS[0], ITEMS[1:4]), (ITEMS[9], []), (ITEMS[3], ITEMS[40:42])]
    wanted = [oracle(*loaded, prompt_of(*pair), pair[0]["answer"] + END)[0] for pair in asked]
    np.testing.assert_allclose(judge.score(asked), wanted, atol=1e-4)
    assert judge(*asked[1]) == pytest.approx(wanted[1], abs=1e-4)


def test_an_exact_match_includes_the_end_of_the_answer(model: _language_models.LanguageModel, tmp_path: Path) -> None:
    class Certain:
        """Greedy decoding writes "yes" and an empty line."""

        def score_batches(self, items: list[Any], _: int) -> Iterator[list[tuple[int, Scored]]]:
            for place, item in enumerate(items):
                yield [(place, Scored(-0.5, False, 4, item.answer == "yes\n\n"))]

    certain: Any = Certain()
    asked: list[Any] = [({"question": "Is it?", "answer": answer}, []) for answer in ("no", "yes")]
    assert Judge(replace(model, answers=certain), tmp_path / "v").verdicts(asked) == [(-2, False), (-2, True)]


def test_no_prompt_is_scored_twice(judge: Judge, model: _language_models.LanguageModel, tmp_path: Path) -> None:
    asked = [(item, ITEMS[:2]) for item in ITEMS[2:8]]
    verdicts = judge.verdicts([*asked, asked[0]])
    assert verdicts[0] == verdicts[-1]
    silent: Any = None
    assert Judge(replace(model, answers=silent), tmp_path / "verdicts.jsonl").verdicts(asked) == verdicts[:-1]
