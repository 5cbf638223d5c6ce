"""The language models of the papers' tables: scores and answers."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.learned.judge import END, Judge
from benchmarks.papers import _language_models, ragsys
from tests.shared_core.signals.completions_server import oracle

pytestmark = pytest.mark.usefixtures("one_torch_thread", "in_float32")


def test_totals_and_answers_are_those_of_the_model(tiny_model: Path, loaded: tuple[Any, Any]) -> None:
    model, tokenizer = loaded
    prompts = ["Q: Why?\nA:", ragsys.few_shot([("Who?", "I")], "What is tea good for?"), "Q: Why?\nA:"]
    answers = [" So", " It depends on the tea", " It is so"]
    wanted = [oracle(model, tokenizer, *pair)[0] for pair in zip(prompts, answers, strict=True)]
    local = dataclasses.replace(_language_models.from_transformers(tiny_model), batch_size=2)
    np.testing.assert_allclose(local.totals(prompts, answers), wanted, atol=1e-4)

    written = []
    for prompt in prompts:
        ids = tokenizer(prompt, return_tensors="pt")["input_ids"]
        for _ in range(5):
            with torch.no_grad():
                ids = torch.cat([ids, model(ids).logits[:, -1:].argmax(-1)], dim=1)
        more = ids[0, len(tokenizer(prompt)["input_ids"]) :]
        written.append(_language_models.first_line(tokenizer.decode(more, skip_special_tokens=True).split("\n")[0]))
    assert local.complete(prompts, 5) == written


def test_a_judge_gives_log_p_of_the_answer_and_its_end(
    tiny_model: Path, loaded: tuple[Any, Any], tmp_path: Path
) -> None:
    items = [{"question": f"{word}?", "answer": f"{word}(x)"} for word in ("tea", "rain", "What", "keeps", "well")]
    judge = Judge(_language_models.from_transformers(tiny_model), tmp_path / "verdicts.jsonl")
    asked = [(items[0], items[1:4]), (items[4], [])]
    prompts = ["".join(f"{one['question']}\n{one['answer']}\n\n" for one in some) for _, some in asked]
    wanted = [
        oracle(*loaded, f"{prompt}{item['question']}\n", item["answer"] + END)[0]
        for prompt, (item, _) in zip(prompts, asked, strict=True)
    ]
    np.testing.assert_allclose(judge.score(asked), wanted, atol=1e-4)


def test_kept_answers_are_not_asked_again_and_an_unfinished_line_is(tiny_model: Path, tmp_path: Path) -> None:
    model = dataclasses.replace(_language_models.from_transformers(tiny_model), batch_size=1)
    prompts = ["Q: Why is tea good?\nA:", "Q: Why?\nA:"]
    file = tmp_path / "answers.jsonl"
    answers = model.complete(prompts, 3, file)
    assert answers == model.complete(prompts, 3)
    file.write_text(file.read_text(encoding="utf-8")[:-3], encoding="utf-8")
    asked = []

    def recorded(batch: list[str], tokens: int) -> list[str]:
        asked.append((batch, tokens))
        return model.batch_complete(batch, tokens)

    again = dataclasses.replace(model, batch_complete=recorded)
    assert again.complete(prompts, 3, file) == answers
    # The longest prompt comes first, so the line of the other one was unfinished.
    assert asked == [([prompts[1]], 3)]
    assert again.complete(prompts, 3, file) == answers
    assert again.complete(prompts[:1], 4, file) == model.complete(prompts[:1], 4)
    assert asked[1:] == [([prompts[0]], 4)]
