"""Where metadata, records and files have the number or code of a text, and its place in its document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._validation import as_text, is_missing

# The usual keys, each with the word that says what the number is.
IDENTIFIER_KEYS = {
    "section": "{}",
    "clause": "Clause {}",
    "article": "Article {}",
    "rule": "Rule {}",
    "number": "{}",
    "key": "{}",
    "code": "{}",
    "symbol": "{}()",
}
# The keys under which a chunk has its number in its document. The first one that has a number counts.
PLACE_KEYS = ("chunk_index", "chunk", "seq_num")


def find_identifiers(record: Mapping[str, Any]) -> list[str]:
    """The numbers and codes under the usual keys of a record.

    >>> find_identifiers({"section": 12.0, "clause": "4.5", "code": ["E10", None], "symbol": "load", "rule": {}})
    ['12', 'Clause 4.5', 'E10', 'load()']
    """
    return [write_identifier(form, text) for form, value in list_values(record) if (text := as_number(value))]


def list_values(record: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The values under the usual keys, each with the form in which it is written."""
    if record.keys().isdisjoint(IDENTIFIER_KEYS):
        return []
    return [(form, one) for key, form in IDENTIFIER_KEYS.items() if key in record for one in as_several(record[key])]


def as_several(value: Any) -> list[Any]:
    """The values of a collection, or one value; none that is missing."""
    values = value if isinstance(value, (list, tuple, set, frozenset)) else [value]
    return [one for one in values if not is_missing(one)]


def as_number(value: Any) -> str | None:
    """A number or code as it is written; None for what is none. 12.0 is an integer beside a missing value."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        value = int(value)
    if isinstance(value, (str, int, float, np.integer, np.floating)) and not isinstance(value, bool):
        return as_text(value).strip()
    return None


def write_identifier(form: str, text: str) -> str:
    """ "7" under "clause" as "Clause 7". What begins with a word says itself what it is."""
    return form.format(text) if text[0].isdigit() or "(" in form else text
