"""The items of a framework among which a set is selected, their names for ``shown``, and the set."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import as_float, as_numeric
from .._values import as_plain
from ..errors import InvalidInputError, VectorSourceError, explain_lengths, quoted
from ..selectors.selection import Selection
from ..texts import Texts
from ..texts.neighbours import Neighbours

# The names of our searches among those that found an item.
VECTOR_SEARCH, KEYWORD_SEARCH, FOLLOW = "vector search", "keyword search", "follow"
# What the names of texts begin with.
_TEXT = "setselect-text:"


class Pool(NamedTuple):
    """The items to select from, with their ids and vectors row by row.

    ``text`` gives the text of an item that was embedded. ``body`` gives the text by which an item is compared with
    others, and in which references are found; it is empty for an item that stands for more than its text. ``fetch_k``
    is the size of the search; None if the user handed the items in. ``exhausted``: a wider search would not find more.
    ``scores``: what the items came with, where ``relevance`` may name it. ``without_vector``: the ids, or the texts, of
    items that were left out because they have no vector. ``searches``: the names of the searches that found each item;
    None if there was only one.
    """

    items: Sequence[Any]
    ids: Sequence[Hashable]
    text: Callable[[Any], str]
    body: Callable[[Any], str]
    vectors: Any
    fetch_k: int | None = None
    exhausted: bool = True
    scores: Sequence[float | None] | None = None
    without_vector: Sequence[Hashable] = ()
    searches: Sequence[tuple[str, ...]] | None = None

    def take(self, rows: Sequence[int]) -> Pool:
        """The items at these rows."""
        items, ids, vectors = ([column[row] for row in rows] for column in (self.items, self.ids, self.vectors))
        scores = None if self.scores is None else [self.scores[row] for row in rows]
        searches = None if self.searches is None else [self.searches[row] for row in rows]
        return self._replace(items=items, ids=ids, vectors=vectors, scores=scores, searches=searches)

    def found_by(self, search: str) -> Pool:
        """The pool, of which this search found all items."""
        return self._replace(searches=[(search,)] * len(self.items))

    def with_each_id_once(self) -> Pool:
        """The pool with the first item of each id, and all items without an id."""
        first: dict[Hashable, int] = {}
        return self.take([i for i, name in enumerate(self.ids) if name is None or first.setdefault(name, i) == i])

    def no_vectors(self) -> VectorSourceError:
        """The error for items none of which has a vector."""
        return VectorSourceError(
            f"none of the {len(self.without_vector)} documents has a stored vector, for example "
            f"{quoted(self.without_vector[0])}. Put vectors into the store, or call register_vector_source with a "
            "reader that knows where they are. A class that gets documents in place of searching also takes an "
            "embedding model"
        )


def stack_vectors(vectors: Any, ids: Sequence[Hashable]) -> NDArray[Any]:
    """The stored vectors of items as an array. If one is no vector, or differs in length, the error names its id."""
    try:
        return as_numeric(vectors, "vectors")
    except InvalidInputError:
        rows = [as_numeric(row, f"the vector of {quoted(name)}") for row, name in zip(vectors, ids, strict=True)]
        for row, name in zip(rows, ids, strict=True):
            if row.ndim != 1 or len(row) != rows[0].size:
                raise InvalidInputError(
                    f"the vector of {quoted(name)} has shape {row.shape}, that of {quoted(ids[0])} has "
                    f"{rows[0].shape}: {explain_lengths(row.size, rows[0].size)}"
                ) from None
        raise


def read_scores(values: Iterable[Any]) -> list[float | None]:
    """The scores that items came with; None for a missing one, and for what is no number that a float can hold."""
    numbers = (as_float(as_plain(value)) for value in values)
    return [None if math.isnan(number) else number for number in numbers]


def drop_ambiguous(ids: Sequence[Hashable], texts: Sequence[str]) -> list[Any]:
    """``ids`` with None for each id that occurs with different texts, such as that of a document split into pieces.

    >>> drop_ambiguous(["a", "b", "b"], ["one", "two", "three"])
    ['a', None, None]
    """
    first: dict[Hashable, str] = {}
    pairs = zip(ids, texts, strict=True)
    ambiguous = {name for name, text in pairs if first.setdefault(name, text) != text}
    return [None if name in ambiguous else name for name in ids]


def unite(pool: Pool, others: Sequence[Pool]) -> tuple[Pool, list[list[int]]]:
    """``pool`` with the items of other searches that it lacks, and for each of these the rows of what it added.

    An item is the same as one before it that has its id, or if it has none, its text. Their score is the highest of
    their scores.
    """
    columns: tuple[list[Any], ...] = [], [], [], [], []
    items, ids, vectors, scores, searches = columns
    reads_texts = any(None in one.ids for one in (pool, *others))
    rows: dict[Hashable, int] = {}
    added = []
    for one in (pool, *others):
        first, n = len(items), len(one.items)
        one_by_one = one.items, one.ids, one.vectors, one.scores or [None] * n, one.searches or [()] * n
        for values in zip(*one_by_one, strict=True):
            item, name, _, score, names = values
            by_id, by_text = ("id", name), ("text", pool.text(item) if reads_texts else "")
            row = len(items) if one is pool else rows.get(by_text if name is None else by_id, len(items))
            if row == len(items):
                for column, value in zip(columns, values, strict=True):
                    column.append(value)
                rows.setdefault(by_text, row)
                rows.setdefault(by_id, row)
            else:
                scores[row] = max((known for known in (scores[row], score) if known is not None), default=None)
                searches[row] = tuple(dict.fromkeys(searches[row] + names))
        added.append([*range(first, len(items))])
    kept, found_by = None if pool.scores is None else scores, None if pool.searches is None else searches
    return pool._replace(items=items, ids=ids, vectors=vectors, scores=kept, searches=found_by), added[1:]


def name_of_text(text: str) -> str:
    """The name by which ``shown`` recognises a text under any id."""
    return _TEXT + hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


def is_name_of_text(name: Hashable) -> bool:
    """Whether ``shown`` compares this name with texts, and not with ids."""
    return str(name).startswith(_TEXT)


def name_items(ids: Iterable[Hashable], texts: Iterable[str], joined: Iterable[Mapping[str, str] | None]) -> list[str]:
    """The names by which ``shown`` recognises items while they have these texts. Without a text, the name is the id.

    An item that was ``joined`` has the names of its parts.
    """
    names: list[str] = []
    for item_id, text, parts in zip(ids, texts, joined, strict=True):
        if parts is not None:
            names += parts.values()
        elif text or item_id is not None:
            names.append(name_of_text(text) if text else str(item_id))
    return names


class Followed(NamedTuple):
    """What was followed: a ``"name"``, ``"link"``, ``"citation"`` or ``"neighbour"``, and the rows that it added.

    The name of a neighbour is the id of the item next to which it stands.
    """

    kind: str
    name: str
    rows: list[int]


class ExtraSearch(NamedTuple):
    """What an extra retriever found; ``left_out``: the ids, or texts, of items that the filter may leave out."""

    name: str
    items: Sequence[Any]
    error: str | None
    left_out: Sequence[Hashable] = ()


class ItemSelection(NamedTuple):
    """The selected items in order of selection; ``selection.indices`` are rows of ``pool``.

    ``cut_short``: a constraint, or items with the same text, left fewer than ``k`` items, and more candidates may help.
    ``cosines``: those of the candidates with the question, where a selector did not get another relevance.
    ``milliseconds`` are of the whole call. ``queries``: the texts of the question and its sub-questions, in the order
    of ``selection.serves``. ``texts``: what was read of the candidates, None if nothing was. ``neighbours``: those of
    the candidates, where they are joined. With the setting ``shadow``, ``returned`` holds what the call returns, and
    ``shadow`` the line of the log. ``explain`` says in words why each item is selected; it is called only if somebody
    asks.
    """

    items: list[Any]
    selection: Selection
    pool: Pool
    cut_short: bool = False
    cosines: NDArray[Any] | None = None
    milliseconds: float = 0.0
    followed: Sequence[Followed] = ()
    extras: Sequence[ExtraSearch] = ()
    queries: Sequence[str] = ()
    texts: Texts | None = None
    neighbours: Neighbours | None = None
    returned: list[Any] | None = None
    shadow: Mapping[str, Any] | None = None
    explain: Callable[[], list[str]] = list

    @classmethod
    def nothing(cls, pool: Pool | None = None, queries: Sequence[str] = ()) -> ItemSelection:
        """The selection from no items."""
        empty = Selection(np.zeros(0, np.int64), np.zeros(0), np.zeros(0), 0.0)
        return cls([], empty, pool or Pool([], [], str, str, []), queries=queries)

    @property
    def ids(self) -> list[Hashable]:
        """Ids of the selected items."""
        return [self.pool.ids[row] for row in self.selection.indices.tolist()]

    @property
    def runs(self) -> list[list[int]]:
        """The positions of the selected items, those of neighbours that are joined together and in reading order."""
        rows = self.selection.indices.tolist()
        if self.neighbours is None:
            return [[position] for position in range(len(rows))]
        position = {row: position for position, row in enumerate(rows)}
        return [[position[row] for row in run] for run in self.neighbours.find_runs(rows)]

    def read_each(self, column: NDArray[Any] | None, of: Sequence[Any]) -> list[Any]:
        """For each selected item the one that a ``column`` of the selection numbers; None where there is none."""
        numbers = [-1] * len(self.items) if column is None else column.tolist()
        return [None if number < 0 else of[number] for number in numbers]
