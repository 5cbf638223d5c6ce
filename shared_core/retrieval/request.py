"""The checked settings of a call, and the selection from the items of a pool."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from .._validation import is_missing
from ..candidates import CONSTRAINTS, Candidates
from ..errors import InvalidInputError, warn
from ..facts import Facts, describe_item, read_facts
from ..selection.reasons import explain
from ..selection.route import Limits, select_set
from ..selectors.registry import capabilities_of, make_selector
from ..selectors.selection import Selection
from ..texts import Texts
from ..texts.words import Weigh
from .inputs import read_numbers, read_parts, read_ranks, read_some
from .memory import is_name_of_text, name_of_text
from .pool import ItemSelection, Pool
from .question import EmbeddedQuery

if TYPE_CHECKING:
    from .settings import Call


# The settings that only the bonus for references uses.
OF_REFERENCES = ("title", "identifier", "links", "follow")
# References among n items take memory and time that grow with n². A search that was widened beyond this number, because
# a constraint left the set short, reads none.
MOST_REFERRING = 5_000


class Request:
    """The checked settings of a call, and what follows from them.

    It checks together the settings that were checked one by one, and makes the selector. A function that is the value
    of a setting gets ``view(item)``. ``refer_by_default``: whether references are read if no setting asks for it.
    A setting without effect gives a warning, and so does each message of ``advice``, which comes from the class. The
    messages that were ``told`` before are not repeated.
    """

    def __init__(
        self,
        settings: Call,
        *,
        view: Callable[[Any], Any],
        refer_by_default: bool,
        told: Sequence[str] = (),
        advice: Sequence[str] = (),
    ) -> None:
        self.settings, self.view = settings, view
        self.selector = settings.make_selector()
        self.without_effect = [*settings.find_without_effect(self.selector), *advice]
        for message in self.without_effect:
            if message not in told:
                warn(message)
        self.k, fetch_k = settings.sizes()
        self.shown = frozenset(settings.shown)
        self.fetch_k = fetch_k + len(self.shown)
        self.limits = Limits(
            settings.budget, settings.score_threshold, settings.min_gain, settings.min_k, settings.drop_duplicates
        )
        limits = settings.budget, settings.score_threshold, settings.min_gain
        limited = settings.is_constrained or any(limit is not None for limit in limits)
        ordered = settings.order != "selection" or self.selector == make_selector("similarity")
        # Of this many candidates, or fewer, every selector selects all. 0 for plain similarity, whose user asked for
        # the nearest items and not for a selection, and if a constraint is set, or an order other than the default.
        self.all_of = 0 if self.k is None or limited or ordered else self.k
        asked = refer_by_default or any(getattr(settings, name) not in (None, False) for name in OF_REFERENCES)
        asked = asked or getattr(self.selector, "reference_weight", 1) != 1
        self.capabilities = capabilities_of(self.selector)
        # Examples stand next to each other by accident.
        self.reads_neighbours = refer_by_default and self.capabilities.neighbours
        self.is_constrained, self.has_relevance = settings.is_constrained, settings.has_relevance
        # Whether the texts are searched for references to other items.
        self.reads_references = asked and self.capabilities.references

    def with_shown(self, names: Iterable[str]) -> Self:
        """The request with further shown items; nothing is checked again."""
        other = copy.copy(self)
        other.shown = self.shown.union(names)
        other.fetch_k = self.fetch_k + len(other.shown) - len(self.shown)
        return other

    def select(self, pool: Pool, queries: Sequence[EmbeddedQuery], weigh: Weigh | None = None) -> ItemSelection:
        """Select among the items; ``weigh`` says what words weigh in the corpus.

        If several items have the same id, only the first one is a candidate. Items whose id is None stay separate.
        With ``drop_duplicates`` no two items of the result have the same text, and no item has the text of a shown
        one. Empty texts are not compared.
        """
        asked = [query.text for query in queries]
        if not pool.items:
            return ItemSelection.nothing(pool, asked)
        # Nodes have ids; documents may have none.
        if all(name is None for name in pool.ids) and not all(map(is_name_of_text, self.shown)):
            origin = "the retriever in front" if pool.fetch_k is None else "the store"
            raise InvalidInputError(
                f"shown= compares the documents' ids, and no candidate has an id: give {origin} documents with ids, or "
                "pass register_vector_source(..., id_of=...) if the ids are in the metadata"
            )
        once = pool.with_ids_once()
        distinct = once.with_array()
        candidates = searched = self._make_candidates(distinct, queries)
        if queries[0].pap is not None:
            candidates = queries[0].pap.apply(candidates)
        texts = self.read_texts(distinct, weigh)
        shown = self._find_shown(distinct)
        question = [] if getattr(self.selector, "word_weight", 1) == 0 else [query.words for query in queries]
        selection = select_set(
            candidates,
            self.selector,
            self.k,
            question=question,
            texts=texts,
            relevance_scale=self.settings.relevance_scale,
            shown=shown,
            limits=self.limits,
        )
        # A constraint or repeated items may have left the set short.
        may_be_cut_short = self.is_constrained or len(once.items) < len(pool.items) or selection.left_out
        cut_short = bool(may_be_cut_short) and self._is_cut_short(distinct, candidates, selection, shown)
        return ItemSelection(
            [distinct.items[row] for row in selection.indices.tolist()],
            selection,
            distinct,
            cut_short,
            # The retriever in front searched without the perspective.
            None if searched.relevance_given else searched.relevance,
            queries=asked,
            question=queries[0].vector,
            texts=texts,
            neighbours=texts.neighbours if texts is not None and self.settings.join_neighbours else None,
            explain=partial(self._explain, selection, distinct, texts, question, asked, shown),
        )

    def _explain(
        self,
        selection: Selection,
        pool: Pool,
        texts: Texts | None,
        question: Sequence[str],
        queries: Sequence[str],
        shown: Sequence[int],
    ) -> list[str]:
        """Why each item is selected, in words."""
        cover = self.settings.cover if self.capabilities.words else None
        return explain(
            selection,
            self.selector,
            question=question,
            queries=queries,
            texts=texts,
            shown=shown,
            values=None if cover is None else read_some(pool.items, cover, "cover", self.view),
        )

    def _is_within_limit(self, pool: Pool) -> bool:
        """Whether references among the items may be read."""
        return (pool.fetch_k or 0) <= max(self.fetch_k, MOST_REFERRING)

    def _find_shown(self, pool: Pool) -> list[int]:
        """The rows of the items whose ids, or the names of whose texts, are shown."""
        rows = {row for row, name in enumerate(pool.ids) if name in self.shown}
        if any(map(is_name_of_text, self.shown)):
            names = [name_of_text(pool.body(item)) for item in pool.items]
            known = [row for row, name in enumerate(names) if name in self.shown]
            # select_set leaves out the copies of a shown text. One row of each is enough.
            rows.update({names[row]: row for row in reversed(known)}.values() if self.limits.drop_copies else known)
        return sorted(rows)

    def _make_candidates(self, pool: Pool, queries: Sequence[EmbeddedQuery]) -> Candidates:
        items, settings, view = pool.items, self.settings, self.view
        source = None if settings.max_per_source is None else settings.source
        # Copies are left out by ``prefer`` too, and references lead to the version that it says.
        prefers = settings.drop_duplicates or settings.drop_near_duplicates is not None or self.reads_references
        prefer = settings.prefer if prefers else None
        cover = settings.cover if self.capabilities.words else None
        return Candidates(
            queries[0].vector if len(queries) == 1 else np.array([query.vector for query in queries]),
            pool.vectors,
            relevance=self._read_relevance(pool) if self.has_relevance else None,
            quality=None if settings.quality is None else read_numbers(items, settings.quality, "quality", view),
            cover=None if cover is None else read_parts(items, cover, "cover", view),
            ids=pool.ids,
            costs=None if settings.costs is None else read_numbers(items, settings.costs, "costs", view),
            sources=None if source is None else read_some(items, source, "source", view),
            prefer=None if prefer is None else read_ranks(items, prefer, "prefer", view),
            copy=False,
            **{name: getattr(settings, name) for name in CONSTRAINTS},
        )

    def _read_relevance(self, pool: Pool) -> NDArray[np.float64]:
        """The relevance that the settings give the items."""
        relevance: Any = self.settings.relevance
        if relevance != "score" or pool.scores is None:
            return read_numbers(pool.items, relevance, "relevance", self.view)
        for row, (item, score) in enumerate(zip(pool.items, pool.scores, strict=True)):
            if is_missing(score):
                raise InvalidInputError(
                    f"relevance='score' uses the score of each node, but {describe_item(item, row)} has none: put a "
                    "retriever or a reranker in front that sets it, or leave relevance out"
                )
        return np.array(pool.scores, np.float64)

    def read_facts(self, pool: Pool) -> list[Facts]:
        """What the items say of themselves, by the settings and by their metadata."""
        settings, given, named = self.settings, {}, dict[str, str]()
        names = ["source"]
        names += [name for name in ("title", "identifier", "links") if self.reads_references]
        names += ["neighbours"] if self.reads_neighbours or settings.join_neighbours else []
        for name in names:
            if (value := getattr(settings, name)) is not None:
                given[name] = read_some(pool.items, value, name, self.view, tells=name != "source")
                named |= {name: value} if isinstance(value, str) else {}
        return read_facts(pool.items, pool.ids, given, named)

    def read_texts(self, pool: Pool, weigh: Weigh | None = None) -> Texts | None:
        """The texts by which copies are found, with what the selector reads in them."""
        is_small = self._is_within_limit(pool)
        refers, adjoins = self.reads_references and is_small, self.reads_neighbours and is_small
        reads_facts = refers or adjoins or self.settings.join_neighbours
        bodies = list(map(pool.body, pool.items))
        if not (reads_facts or self.capabilities.words):
            return Texts(bodies, refer=False, neighbours=False) if self.settings.drop_duplicates else None
        texts = bodies if pool.text is pool.body else list(map(pool.text, pool.items))
        facts = self.read_facts(pool) if reads_facts else None
        own_bodies = None if texts == bodies else bodies
        return Texts(texts, facts, bodies=own_bodies, refer=refers, neighbours=adjoins, weigh=weigh)

    def _is_cut_short(self, pool: Pool, candidates: Candidates, selection: Selection, shown: Sequence[int]) -> bool:
        """Whether the set is short, and further candidates may fill it."""
        settings = self.settings
        if selection.ended or (self.k is not None and len(selection) >= self.k):
            return False
        threshold = None if candidates.relevance_given else settings.score_threshold
        cosines = candidates.relevance.astype(np.float64)
        # Where the store returns the highest cosines first, a wider search finds none above a threshold that is passed.
        falling = cosines[: pool.searched]
        if threshold is not None and falling.size and falling[-1] < threshold and (np.diff(falling) < 1e-6).all():
            return False
        if settings.budget is None or candidates.costs is None:
            return True
        unpicked = np.ones(len(cosines), bool)
        unpicked[[*selection.indices.tolist(), *shown, *selection.left_out]] = False
        left = settings.budget - float(candidates.costs[selection.indices].sum())
        # If only the budget forbids the others, it ended the selection.
        return not unpicked.any() or bool((candidates.costs[unpicked] <= left).any())
