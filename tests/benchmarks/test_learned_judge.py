"""The judge of example sets, with a tiny language model, and the kernels that are learned from its feedback."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import learned_from_model
from benchmarks.learned import from_model_page
from benchmarks.learned.data import Split
from benchmarks.learned.judge import END, Judge
from benchmarks.learned.rows import BEST, LEARNED, Experiment, Teacher
from benchmarks.papers import _language_models
from shared_core.learning import CoverageFeedback, best, hold_out
from shared_core.learning.objectives.factors import LinearFactors
from shared_core.learning.objectives.likelihood import log_likelihood
from shared_core.signals.language_models import Scored
from tests.benchmarks.tiny_lm import loaded, total

pytestmark = pytest.mark.usefixtures("one_torch_thread")

WORDS = ("tea", "rain", "What", "keeps", "well", "good", "for", "us")
ITEMS = [
    {"id": f"{a}-{b}", "question": f"{a} {b}?", "answer": f"{a}({b}(x))"} for a, b in itertools.product(WORDS, WORDS)
]


@pytest.fixture(scope="module")
def model(tiny_model: Path) -> _language_models.LanguageModel:
    return _language_models.from_transformers(tiny_model, 2, "float32")


@pytest.fixture
def judge(model: _language_models.LanguageModel, tmp_path: Path) -> Judge:
    return Judge(model, tmp_path / "verdicts.jsonl", print)


def prompt_of(item: dict[str, str], examples: list[dict[str, str]]) -> str:
    return "".join(f"{one['question']}\n{one['answer']}\n\n" for one in examples) + f"{item['question']}\n"


def test_log_p_is_that_of_the_answer_and_its_end(judge: Judge, tiny_model: Path) -> None:
    asked = [(ITEMS[0], ITEMS[1:4]), (ITEMS[9], []), (ITEMS[3], ITEMS[40:42])]
    wanted = [total(*loaded(tiny_model), prompt_of(*pair), pair[0]["answer"] + END) for pair in asked]
    np.testing.assert_allclose(judge.score(asked), wanted, atol=1e-4)
    assert judge(*asked[1]) == pytest.approx(wanted[1], abs=1e-4)


def test_an_exact_match_includes_the_end_of_the_answer(model: _language_models.LanguageModel, tmp_path: Path) -> None:
    class Certain:
        """Greedy decoding writes "yes" and an empty line."""

        def count_tokens(self, items: list[Any]) -> list[int]:
            return [1] * len(items)

        def score_batches(self, items: list[Any], _: int) -> Iterator[list[tuple[int, Scored]]]:
            for place, item in enumerate(items):
                yield [(place, Scored(-0.5, False, 4, item.answer == "yes\n\n"))]

    certain: Any = Certain()
    asked: list[Any] = [({"question": "Is it?", "answer": answer}, []) for answer in ("no", "yes")]
    assert Judge(replace(model, answers=certain), tmp_path / "v", print).verdicts(asked) == [(-2, False), (-2, True)]


def test_no_prompt_is_scored_twice_and_a_torn_line_is_scored_again(
    judge: Judge, model: _language_models.LanguageModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [(item, ITEMS[:2]) for item in ITEMS[2:8]]
    found = judge.verdicts([*asked, asked[0]], "these")
    assert found[0] == found[-1]
    assert "these: 6 prompts, 6 of them new" in capsys.readouterr().out
    file = tmp_path / "verdicts.jsonl"
    entries = [json.loads(line) for line in file.read_text().splitlines()]
    assert sum(len(entry["verdicts"]) for entry in entries) == 6

    class Silent:
        def count_tokens(self, items: list[Any]) -> list[int]:
            assert not items
            return []

    silent: Any = Silent()
    assert Judge(replace(model, answers=silent), file, print).verdicts(asked) == found[:-1]
    whole = file.read_bytes()
    file.write_bytes(whole[:-20])
    again = Judge(model, file, print)
    np.testing.assert_allclose(again.score(asked), [one.log for one in found[:-1]], atol=1e-5)
    assert all(json.loads(line) for line in file.read_text().splitlines())


@pytest.fixture
def experiment() -> Experiment:
    """Sixty-four items whose vectors show their two words; twelve of them are test queries."""
    rows = np.array([(WORDS.index(a), 8 + WORDS.index(b)) for a, b in itertools.product(WORDS, WORDS)])
    vectors = np.zeros((64, 16), np.float32)
    np.put_along_axis(vectors, rows, np.float32(0.5**0.5), axis=1)
    order = np.random.default_rng(3).permutation(64)
    test, pool = order[:12], order[12:]
    split = Split([], [ITEMS[row] for row in pool], [ITEMS[row] for row in test])
    return Experiment("geoquery", 0, split, vectors[pool], vectors[test], CoverageFeedback())


def test_a_study_labels_learns_and_judges_and_reads_all_of_it_again(
    judge: Judge, experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmarks.learned import rows

    monkeypatch.setattr(learned_from_model, "CACHE", tmp_path)
    monkeypatch.setattr(rows, "CACHE", tmp_path)
    monkeypatch.setattr(rows, "FETCH_K", 40)
    monkeypatch.setattr(learned_from_model, "EPOCHS", 1)
    monkeypatch.setattr(rows, "EPOCHS", {"geoquery": 1})
    monkeypatch.setattr(Experiment, "load", lambda *_: experiment)
    plan = learned_from_model.Plan(15, 8, 3)
    recipes = {row: recipe for row, recipe in LEARNED.items() if row in (BEST, from_model_page.LIKELIHOOD)}
    monkeypatch.setattr(learned_from_model, "LEARNED", recipes)
    monkeypatch.setattr(learned_from_model, "ABLATED", {})
    study = learned_from_model.Study("geoquery", judge, 12, plan)
    study.label()
    labelled = judge.tokens
    found = study.judged()
    assert 0 < labelled < judge.tokens
    trained, held_out = study.teacher.split.trained, study.teacher.split.held_out
    assert (len(trained), len(held_out)) == (12, 3)
    learned = {*recipes, from_model_page.COVERAGE, from_model_page.COVERAGE_SAME}
    assert set(found["fits"]) == learned
    assert set(found["verdicts"]) == {
        *learned, *from_model_page.UNLEARNED_ROWS, from_model_page.KEPT, from_model_page.NO_QUERY, "greedy oracle"
    }  # fmt: skip
    assert found["verdicts"][BEST][4].shape == (12, 2)
    read = judge.tokens
    again = learned_from_model.Study("geoquery", judge, 12, plan).judged()
    assert judge.tokens == read
    np.testing.assert_array_equal(again["verdicts"][BEST][4], found["verdicts"][BEST][4])


def test_the_likelihoods_own_kernel_is_that_of_its_best_epoch(experiment: Experiment) -> None:
    split = hold_out(experiment.split.pool, experiment.pool, seed=0)
    teacher = Teacher(experiment, experiment.feedback, split, {"random": 4})
    recipe = {**LEARNED["likelihood, NDPP"], "patience": 100}
    fitted, kernel = learned_from_model.fit_by_likelihood(teacher, recipe, epochs=4)
    numbers = [epoch.likelihood for epoch in fitted.history]
    assert np.argmax(numbers) > 0
    place = {row: number for number, row in enumerate(split.examples)}
    held_out = best([entry for entry in teacher.labels("random") if entry.query in split.held_out], 0.1)
    factors = LinearFactors(experiment.pool[list(split.examples)], kernel.W_V, kernel.W_B, -np.diag(kernel.C, -1)[::2])
    found = log_likelihood(factors, [[place[row] for row in entry.subset] for entry in held_out])
    assert found.mean() == pytest.approx(max(numbers))
