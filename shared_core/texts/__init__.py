"""What the candidates' texts say: their words, their names, and which of them refer to which others."""

from .texts import Texts, as_texts

__all__ = ["Texts", "as_texts"]
