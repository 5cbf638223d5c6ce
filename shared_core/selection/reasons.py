"""Why each pick of a selection is there, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..selectors.registry import Selector
from ..selectors.selection import Selection, newly_served, write_reasons
from ..texts import Texts
from ..texts.words import Text, list_exact, list_terms

# A reason names at most this many words, and none that brings less than this share of what the first one brings.
MOST_WORDS, LEAST_SHARE = 5, 0.25


def explain(
    selection: Selection,
    selector: Selector,
    *,
    question: Sequence[str] = (),
    queries: Sequence[str] = (),
    texts: Texts | None = None,
    shown: Sequence[int] = (),
) -> list[str]:
    """The sentences of :func:`write_reasons` for a selection with the arguments of :func:`select_set`.

    ``queries`` are the questions as they are shown.
    """

    def name_row(row: int) -> str:
        return (texts.find_title(row) or texts.bodies[row] if texts is not None else "") or f"candidate {row}"

    words = exact = None
    if texts is not None and any(question) and getattr(selector, "word_weight", False):
        words, exact = find_new_words(texts, question, selection, shown)
    covers = newly_served(selection, queries.__getitem__)
    return write_reasons(selection, words=words, exact=exact, covers=covers, name_row=name_row)


def find_new_words(
    texts: Texts, question: Sequence[str], selection: Selection, shown: Sequence[int] = ()
) -> tuple[list[list[str]], list[list[str]]]:
    """For each pick the words, and the exact names, of the question that no earlier pick and no ``shown`` text has.

    What counts most comes first. Single letters, such as the s of "app's", are left out of the words.
    """
    rows = np.delete(np.arange(len(texts.bodies)), selection.left_out)
    covered, weights, exact = (texts.take(rows.tolist()) if selection.left_out else texts).match_words(question)
    joined = Text(" ".join(question))
    terms = list_terms(joined)
    names = [*terms, *list_exact(joined)]
    weights = weights * [len(term) > 1 or not "a" <= term <= "z" for term in terms]
    if exact is not None:
        # What the question names exactly comes before its other words.
        covered = np.hstack([covered, exact])
        weights = np.append(weights, np.full(exact.shape[1], 1e3 * weights.max(initial=1.0)))
    before = covered[np.searchsorted(rows, list(shown))].any(axis=0)
    of_words, of_names = [], []
    for row in np.searchsorted(rows, selection.indices):
        new = np.where(before, 0.0, weights * covered[row])
        before |= covered[row] > 0
        first = np.argsort(-new, kind="stable")[:MOST_WORDS]
        best = first[new[first] > LEAST_SHARE * new.max(initial=0.0)].tolist()
        of_words.append([names[j] for j in best if j < len(terms)])
        of_names.append([names[j] for j in best if j >= len(terms)])
    return of_words, of_names
