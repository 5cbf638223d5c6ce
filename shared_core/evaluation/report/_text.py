"""Numbers and texts as the report prints them."""

from __future__ import annotations

import math

_ELLIPSIS = "…"


def digits_for(values: list[float]) -> int:
    """How many decimals a column of such values deserves: 3 below 10, fewer above, none from 10,000."""
    largest = max((abs(value) for value in values), default=0.0)
    for bound, digits in ((10.0, 3), (100.0, 2), (10_000.0, 1)):
        if largest < bound:
            return digits
    return 0


def number(value: float, digits: int = 3) -> str:
    """``value`` with ``digits`` decimals, without the 0 before the point, with a real minus.

    Examples
    --------
    >>> number(0.4821), number(-0.05, 2), number(1.0), number(12345.6, 0)
    ('.482', '−.05', '1.000', '12,346')
    """
    if not math.isfinite(value):
        return "–"
    text = f"{abs(value):,.{digits}f}"
    negative = value < 0 and float(text.replace(",", "")) != 0
    if text.startswith("0."):
        text = text[1:]
    return f"−{text}" if negative else text


def p_value(p: float) -> str:
    """A p value as papers print it.

    Examples
    --------
    >>> p_value(0.0312), p_value(0.0000001), p_value(1.0)
    ('p = .031', 'p < .001', 'p = 1.000')
    """
    return "p < .001" if p < 0.001 else f"p = {number(p)}"


def parameter(value: float) -> str:
    """The value of a swept parameter, as short as it goes.

    Examples
    --------
    >>> parameter(0.5), parameter(1.0), parameter(-0.25), parameter(100000.0)
    ('.5', '1', '−.25', '100,000')
    """
    text = f"{abs(value):,.6f}".rstrip("0").rstrip(".") if abs(value) < 1e15 else f"{abs(value):g}"
    text = text[1:] if text.startswith("0.") else text
    return f"−{text}" if value < 0 else text


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """``count`` with its noun.

    Examples
    --------
    >>> counted(1, "query", "queries"), counted(2000, "query", "queries")
    ('1 query', '2,000 queries')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def clip(text: str, limit: int) -> str:
    """``text`` in at most ``limit`` characters, with an ellipsis where the end is missing."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + _ELLIPSIS


def clip_middle(text: str, limit: int) -> str:
    """``text`` in at most ``limit`` characters, both ends kept: what tells long ids apart is at either.

    Examples
    --------
    >>> clip_middle("corpus/2024/part-000017.json#41", 13)
    'corpus…son#41'
    """
    if len(text) <= limit:
        return text
    head = limit // 2
    return text[:head] + _ELLIPSIS + text[len(text) - (limit - head - 1) :]
