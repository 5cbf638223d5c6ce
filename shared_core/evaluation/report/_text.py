"""Numbers and texts as the report prints them."""

from __future__ import annotations

import math


def number(value: float, digits: int = 3) -> str:
    """``value`` with ``digits`` decimals and a real minus; a dash for NaN and inf.

    >>> number(0.4821), number(-0.05, 2), number(-0.0001), number(float("nan")), number(2315.2, 0)
    ('0.482', '−0.05', '0.000', '–', '2,315')
    """
    if not math.isfinite(value):
        return "–"
    # Adding 0.0 turns -0.0 into 0.0.
    return f"{round(value, digits) + 0.0:,.{digits}f}".replace("-", "−")


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
