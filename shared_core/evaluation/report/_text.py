"""Long texts as the report cuts them."""

from __future__ import annotations


def clip(text: str, limit: int) -> str:
    """``text`` in at most ``limit`` characters, with an ellipsis in place of the end."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def clip_middle(text: str, limit: int) -> str:
    """``text`` in at most ``limit`` characters, with an ellipsis in place of the middle: long ids differ at the ends.

    >>> clip_middle("corpus/2024/part-000017.json#41", 13)
    'corpus…son#41'
    """
    if len(text) <= limit:
        return text
    head = limit // 2
    return f"{text[:head]}…{text[len(text) - (limit - head - 1) :]}"
