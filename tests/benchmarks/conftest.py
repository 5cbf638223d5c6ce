"""The tiny language model of the tests; torch is imported only where it is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

TEXTS = [f"Q: What is {thing} good for?\nA: {thing} keeps us well" for thing in ("tea", "rain")]


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny causal language model; treat it as read-only."""
    from examples._tiny_lm import tiny_model, tiny_tokenizer

    folder, tokenizer = tmp_path_factory.mktemp("models") / "tiny", tiny_tokenizer(TEXTS * 24, adds_start=True)
    tiny_model(len(tokenizer), positions=1024, spread=0.5).save_pretrained(folder)
    tokenizer.pad_token = tokenizer.eos_token = tokenizer.bos_token
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def loaded(tiny_model: Path) -> tuple[Any, Any]:
    """The model and its tokenizer."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    return AutoModelForCausalLM.from_pretrained(tiny_model).eval(), AutoTokenizer.from_pretrained(tiny_model)


@pytest.fixture
def in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """The papers' language models compute in float32, as the references do."""
    from benchmarks.papers import _language_models

    monkeypatch.setattr(_language_models, "choose_precision", lambda library, _: library.float32)
