"""A model of hashed words in place of a language model."""

from typing import Any

import numpy as np

from shared_core.signals.embedding_models import SentenceModel
from tests.embedding import embed


class WordModel:
    """Embeds the 900 docstrings of the demo in a second, where a language model takes a minute."""

    max_seq_length = None

    def encode(self, texts: list[str], **options: Any) -> np.ndarray:
        return np.array([embed(text) for text in texts], dtype=np.float32)

    encode_document = encode_query = encode


def load_words(name: str) -> SentenceModel:
    return SentenceModel(name, "words", WordModel())
