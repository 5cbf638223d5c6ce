"""The judge of example sets: a tiny judge, trained on made-up items, against token-by-token arithmetic."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.learned import judge, prompts
from benchmarks.learned.judge import Judge
from benchmarks.learned.pointer_lm import PointerLM
from benchmarks.papers import _common

pytestmark = pytest.mark.usefixtures("one_torch_thread")

SIZES = {"width": 32, "layers": 1, "heads": 2}
TIMES = ("dawn", "noon", "dusk", "night", "midday", "evening", "morning", "midnight")
VERBS = ("wake", "call", "text", "ring", "warn", "meet", "join", "pay")
FRIENDS = ("Ann", "Bob", "Cy", "Di", "Ed", "Flo", "Gus", "Hal")
ITEMS = [
    {
        "id": f"{verb} {friend} {time}",
        "question": f"{verb} {friend} at {time}",
        "answer": f"[IN:{verb.upper()} [SL:WHO {friend} ] [SL:WHEN {time} ] ]",
    }
    for verb, friend, time in itertools.product(VERBS, FRIENDS, TIMES)
]
PARTS = {"mtop": ITEMS[::2]}


def vectors() -> dict[str, np.ndarray]:
    """A question's vector encodes its verb, and with less weight its friend."""
    rows = np.zeros((len(ITEMS), 16), np.float32)
    for row, item in enumerate(ITEMS):
        verb, friend, _, _ = item["question"].split()
        rows[row, VERBS.index(verb)], rows[row, 8 + FRIENDS.index(friend)] = 0.9, math.sqrt(0.19)
    return {"mtop": rows[::2]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("judges") / "tiny"
    judge.train(PARTS, vectors(), path, 60, SIZES)
    return path


@pytest.fixture(scope="module")
def tiny(folder: Path) -> Judge:
    return Judge(folder)


def with_verb(verb: str) -> list[dict[str, str]]:
    return [item for item in ITEMS[1::2] if item["question"].startswith(verb)]


def step_by_step(found: Judge, item: dict[str, str], examples: list[dict[str, str]]) -> tuple[float, bool]:
    """Log P of the answer with one forward pass a token, and whether greedy decoding writes the answer."""
    texts = found.texts
    head = [prompts.START, *(t for e in examples for part in texts.ids(e) for t in part), *texts.ids(item)[0]]
    answer = texts.ids(item)[1].tolist()

    def following(ids: list[int]) -> torch.Tensor:
        # The last token is a placeholder for the next one; no earlier position can see it.
        whole = torch.tensor([[*ids, prompts.START]])
        wanted = torch.zeros_like(whole, dtype=torch.bool)
        wanted[0, -1] = True
        with torch.no_grad():
            return found.model.distribution(whole, wanted)[1][0, 0].double()

    total = sum(math.log(following([*head, *answer[:place]])[token]) for place, token in enumerate(answer))
    written: list[int] = []
    while len(written) < len(answer):
        written.append(int(following([*head, *written]).argmax()))
    return total, written == answer


def test_scores_equal_those_of_one_token_after_the_other(tiny: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [(ITEMS[place], ITEMS[place + 1 : place + 1 + size]) for place, size in [(1, 3), (80, 0), (33, 1), (7, 3)]]
    asked += [(item, with_verb(item["question"].split()[0])[:8]) for item in ITEMS[::61]]
    wanted = [step_by_step(tiny, item, examples) for item, examples in asked]
    for most in (judge.BATCH_TOKENS, 120):
        monkeypatch.setattr(judge, "BATCH_TOKENS", most)
        found = tiny.score(asked)
        np.testing.assert_allclose([log for log, _ in found], [log for log, _ in wanted], atol=1e-4)
        assert [match for _, match in found] == [match for _, match in wanted]
    assert tiny.score([]) == []


def test_feedback_is_the_sum_and_its_fingerprint_that_of_the_weights(tiny: Judge, tmp_path: Path) -> None:
    pair = ITEMS[3], ITEMS[5:7]
    assert tiny.feedback.score([pair, pair]) == pytest.approx([tiny.score([pair])[0][0]] * 2)
    assert tiny.feedback(*pair) == pytest.approx(tiny.score([pair])[0][0])
    judge.train(PARTS, vectors(), tmp_path / "other", 2, SIZES)
    other = Judge(tmp_path / "other").feedback.fingerprint
    judge.train(PARTS, vectors(), tmp_path / "again", 2, SIZES)
    assert Judge(tmp_path / "again").feedback.fingerprint == other != tiny.feedback.fingerprint


def test_even_a_tiny_judge_uses_its_examples(tiny: Judge) -> None:
    asked = ITEMS[1::24]
    verbs = [item["question"].split()[0] for item in asked]
    others = [VERBS[(VERBS.index(verb) + 3) % len(VERBS)] for verb in verbs]
    right, wrong = (
        [
            tiny.score([(i, [e for e in with_verb(v) if e is not i][:4])])[0][0]
            for i, v in zip(asked, named, strict=True)
        ]
        for named in (verbs, others)
    )
    assert np.mean(right) > np.mean(wrong) + 1


def test_the_distribution_sums_to_1_and_depends_on_no_later_token() -> None:
    torch.manual_seed(1)
    model = PointerLM(50, 16, 1, 2).eval()
    ids = torch.randint(0, 50, (2, 12))
    wanted = torch.zeros(2, 12, dtype=torch.bool)
    wanted[0, [3, 4, 9]] = True
    wanted[1, [1, 5]] = True
    with torch.no_grad():
        places, chances = model.distribution(ids, wanted)
        logs, real = model.log_probs(ids, wanted)
        later = ids.clone()
        later[:, 5:] = (later[:, 5:] + 7) % 50
        after = model.distribution(later, wanted)[1]
    assert places[0].tolist() == [2, 3, 8]
    assert places[1, :2].tolist() == [0, 4]
    assert real.tolist() == [[True, True, True], [True, True, False]]
    np.testing.assert_allclose(chances.sum(2), 1, rtol=1e-5)
    of_target = chances.gather(2, ids.gather(1, places + 1)[:, :, None])[:, :, 0].log()
    np.testing.assert_allclose(logs[real], of_target[real], atol=1e-5)
    before = places < 5
    np.testing.assert_allclose(after[before], chances[before], atol=1e-6)
    assert not np.allclose(after[0, 2], chances[0, 2], atol=1e-3)


def test_training_prompts_exchange_names_consistently_in_the_whole_prompt(tiny: Judge) -> None:
    source = prompts.TrainingPrompts(tiny.texts, PARTS, vectors(), true=0.0)
    rng = np.random.default_rng(0)
    exchanged = 0
    for shots in (1, 4, 8):
        ids, counted = source.make(rng, shots, strange=False)
        text = [tiny.texts.vocabulary[token] for token in ids]
        marks = [place for place, token in enumerate(ids) if token == prompts.MARK]
        ends = [place for place, token in enumerate(ids) if token == prompts.END]
        assert (len(marks), len(ends), ids[0]) == (shots + 1, shots + 1, prompts.START)
        answers = [range(mark + 1, end + 1) for mark, end in zip(marks, ends, strict=True)]
        assert np.flatnonzero(counted).tolist() == [place for answer in answers[1:] for place in answer]
        # Every answer has the same two slots, under the same names.
        slots = [[text[place] for place in answer if "[SL:" in text[place]] for answer in answers]
        assert all(found == slots[0] for found in slots)
        exchanged += slots[0] != ["Ġ[SL:WHO", "Ġ[SL:WHEN"]
    assert exchanged


def test_true_prompts_hold_the_items_own_words(tiny: Judge) -> None:
    source = prompts.TrainingPrompts(tiny.texts, PARTS, vectors(), true=1.0)
    known = {tuple(np.concatenate(tiny.texts.ids(item)).tolist()) for item in ITEMS[::2]}
    rng = np.random.default_rng(3)
    plain = 0
    for _ in range(20):
        ids = source.make(rng, 1, strange=False)[0].tolist()
        first = ids.index(prompts.END) + 1
        pieces = {tuple(ids[1:first]), tuple(ids[first:])}
        plain += pieces <= known and len(pieces) == 2
    # Three prompts in five keep all words. No prompt holds an item twice.
    assert 5 <= plain <= 19


def test_a_cached_judge_is_not_trained_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "CACHE", tmp_path)
    monkeypatch.setattr(judge, "SIZES", SIZES)
    monkeypatch.setattr(judge, "training_parts", lambda: PARTS)
    monkeypatch.setattr(judge, "embedded", lambda texts: vectors()["mtop"])
    first = judge.judge(1)
    (folder,) = tmp_path.iterdir()
    written = (folder / "weights.pt").stat().st_mtime_ns
    assert judge.judge(1).feedback.fingerprint == first.feedback.fingerprint
    assert (folder / "weights.pt").stat().st_mtime_ns == written
    assert judge.judge(2).feedback.fingerprint != first.feedback.fingerprint
    assert len(list(tmp_path.iterdir())) == 2


def test_without_data_the_script_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_common, "DATA", tmp_path)
    with pytest.raises(SystemExit) as ended:
        judge.main()
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("skipped: no geoquery/geoquery.jsonl")
