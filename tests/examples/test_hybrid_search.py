"""The example on hybrid search with a cross-encoder that its user names."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(model: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(sys, "argv", ["hybrid_search.py", model])
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return runpy.run_path(str(EXAMPLES / "hybrid_search.py"))


@pytest.fixture
def tiny_cross_encoder(tmp_path: Path) -> str:
    """The folder of a cross-encoder with random weights, in the format of Hugging Face."""
    transformers = pytest.importorskip("transformers")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "fft", "array", "zeros", "pad", "convolve"]
    (tmp_path / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    transformers.BertTokenizerFast(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    transformers.set_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.BertConfig(vocab_size=len(words), num_labels=1, **sizes)
    transformers.BertForSequenceClassification(config).save_pretrained(tmp_path)
    return str(tmp_path)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_cross_encoder_decides(
    tiny_cross_encoder: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = run(tiny_cross_encoder, monkeypatch)["found"]
    scores = [document.metadata["score"] for document in found]
    assert len(set(scores)) > 1
    assert scores == sorted(scores, reverse=True)
    # MMR starts with the best document of the ranking that it is given.
    assert f"MMR by the scores: {found[0].id}, " in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_cross_encoder_that_cannot_be_loaded_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match="'no/such-model'"):
        run("no/such-model", monkeypatch)
