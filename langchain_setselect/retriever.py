"""A LangChain retriever that returns the best set of documents from any vector store."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStoreRetriever
from pydantic import model_validator
from typing_extensions import override

from shared_core import PAP, Candidates, InvalidParameterError, Selector, VectorSourceError, choose
from shared_core.checks import integer, number
from shared_core.perspective import checked_direction
from shared_core.quality import ItemValue, item_values
from shared_core.selection import resolve_selector, selector_names, selector_parameters

from .vectors import Hits, Search, source_of

_CHOICE_KEYS = (
    "k",
    "fetch_k",
    "score_threshold",
    "shown",
    "budget",
    "costs",
    "quality",
    "perspective",
    "direction",
    "corpus",
    "scores",
    "search_type",
    "selector",
)


class SetSelectRetriever(VectorStoreRetriever):
    """Over-fetches from a vector store and returns the best *set* of ``k`` documents.

    ``SetSelectRetriever(vectorstore=store)`` stands where ``store.as_retriever()`` stood;
    ``SetSelectRetriever(vectorstore=store, search_type="mmr", search_kwargs={...})`` picks what
    ``store.as_retriever(search_type="mmr", search_kwargs={...})`` would pick if the store's MMR were right.

    Parameters
    ----------
    vectorstore : VectorStore
    search_type : str
        ``"vrsd"`` (default), ``"similarity"``, ``"mmr"``, ``"ndpp"`` or another registered name.
    selector : Selector, optional
        An object (or a name) in place of ``search_type``.
    search_kwargs : dict
        ``k`` (4), ``fetch_k`` (max(20, 5k); 50 where only a budget is given), ``score_threshold`` (the least
        cosine), ``shown`` (ids of documents that the reader already has), ``budget`` (sum of ``costs`` that must
        not be exceeded; without ``k`` it alone ends the choice), the selector's own parameters (``lambda_mult``,
        0.5 as in LangChain; ``refine``; ``kernel``; ...), and any other parameter of this class. What is left,
        ``filter`` for one, goes to the store unchanged. The same keys work as arguments of the constructor (but
        for the store's own) and at call time: ``retriever.invoke(query, k=3)``.
    perspective : str or array-like of shape (d,), optional
        A text or its embedding, to be projected out of the query before the search (PAP).
    direction : {"remove", "emphasize"}
    corpus : bool
        Project the candidates as well (PAP+).
    quality : str or callable, optional
        A metadata key or a function of the document; for ``"mmr"``.
    costs : str or callable, optional
        The same for what a document takes of the ``budget``: ``lambda d: len(d.page_content) / 4``.
    embeddings : Embeddings, optional
        For stores that carry none.
    scores : bool
        Put ``relevance_score`` (cosine with the query that was searched with) and ``selection_score`` (what the
        pick added) into the metadata of the returned copies.

    Raises
    ------
    InvalidParameterError
        A parameter is unknown or out of range: at construction, or at call time for what is given there.
    InvalidInputError
        A stored vector holds NaN or inf (the message names the document's id) or is of another length than the
        query.
    VectorSourceError
        There are no embeddings to work with; the message says which argument to pass.

    Examples
    --------
    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> from langchain_core.vectorstores import InMemoryVectorStore
    >>> store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    >>> _ = store.add_texts(["one", "two", "three"])
    >>> retriever = SetSelectRetriever(vectorstore=store, search_kwargs={"k": 2})
    >>> sorted(retriever.invoke("one")[0].metadata)
    ['relevance_score', 'selection_score']
    """

    search_type: str = "vrsd"
    selector: Any = None
    perspective: Any = None
    direction: str = "remove"
    corpus: bool = False
    quality: Any = None
    costs: Any = None
    embeddings: Embeddings | None = None
    scores: bool = True

    allowed_search_types: ClassVar[Collection[str]] = ("similarity", "vrsd", "mmr", "ndpp")

    @model_validator(mode="before")
    @classmethod
    def validate_search_type(cls, values: dict[str, Any]) -> Any:
        """Sort the constructor's arguments into fields and ``search_kwargs``; refuse unknown ones."""
        fields = {k: v for k, v in values.items() if k in cls.model_fields}
        more = {k: v for k, v in values.items() if k not in cls.model_fields}
        known = {*_CHOICE_KEYS, *_all_parameters()}
        for name in more:
            if name not in known:
                raise InvalidParameterError(
                    f"SetSelectRetriever has no argument {name!r}; it has "
                    f"{', '.join(sorted(known | set(cls.model_fields)))}. "
                    "What is for the store goes into search_kwargs"
                )
        if fields.get("selector") is not None and "search_type" in fields:
            raise InvalidParameterError("give search_type or selector, not both")
        if more:
            fields["search_kwargs"] = {**(fields.get("search_kwargs") or {}), **more}
        return fields

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._request({})
        return self

    @property
    def vector_source(self) -> str:
        """Where the candidates' vectors will come from, in words."""
        store = type(self.vectorstore).__name__
        if source_of(self.vectorstore) is not None:
            return f"store: {store}"
        embeddings = self.embeddings or self.vectorstore.embeddings
        return f"embedding the texts with {type(embeddings).__name__}: no source is registered for {store}"

    @override
    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        request = self._request(kwargs)
        embeddings = self._embeddings()
        vector = embeddings.embed_query(query)
        text = request.perspective_text
        pap = request.pap(None if text is None else embeddings.embed_query(text))
        hits = request.search(self, embeddings, query, vector, pap).run()
        return request.choose(hits, vector, pap)

    @override
    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        request = self._request(kwargs)
        embeddings = self._embeddings()
        vector = await embeddings.aembed_query(query)
        text = request.perspective_text
        pap = request.pap(None if text is None else await embeddings.aembed_query(text))
        hits = await request.search(self, embeddings, query, vector, pap).arun()
        return request.choose(hits, vector, pap)

    def _embeddings(self) -> Embeddings:
        embeddings = self.embeddings or self.vectorstore.embeddings
        if embeddings is None:
            raise VectorSourceError(
                f"{type(self.vectorstore).__name__} carries no embeddings: pass "
                "SetSelectRetriever(..., embeddings=...) with the model that the store was filled with"
            )
        return embeddings

    def _request(self, kwargs: dict[str, Any]) -> _Request:
        own = {name: getattr(self, name) for name in _CHOICE_KEYS if name in type(self).model_fields}
        settings = {**own, **self.search_kwargs, **kwargs}
        if "search_type" in kwargs and "selector" not in kwargs:
            settings["selector"] = None
        return _Request.parse(settings)


@dataclass(frozen=True)
class _Request:
    """What one call asks for, checked."""

    selector: Selector
    k: int | None
    fetch_k: int
    score_threshold: float | None
    shown: tuple[Hashable, ...]
    budget: float | None
    costs: ItemValue | None
    quality: ItemValue | None
    perspective: Any
    direction: str
    corpus: bool
    scores: bool
    store_kwargs: dict[str, Any]

    @classmethod
    def parse(cls, settings: dict[str, Any]) -> _Request:
        rest = dict(settings)
        taken = {name: rest.pop(name, None) for name in _CHOICE_KEYS}
        k, fetch_k = _sizes(taken["k"], taken["fetch_k"], taken["budget"])
        shown = taken["shown"] or ()
        if isinstance(shown, str):
            raise InvalidParameterError(f"shown takes a collection of document ids, not one string: [{shown!r}]")
        return cls(
            selector=_selector(taken["selector"], taken["search_type"], rest),
            k=k,
            fetch_k=fetch_k + len(shown),
            score_threshold=_threshold(taken["score_threshold"]),
            shown=tuple(shown),
            budget=_budget(taken["budget"], taken["costs"]),
            costs=taken["costs"],
            quality=taken["quality"],
            perspective=taken["perspective"],
            direction=checked_direction(taken["direction"]),
            corpus=taken["corpus"],
            scores=taken["scores"],
            store_kwargs=rest,
        )

    @property
    def perspective_text(self) -> str | None:
        return self.perspective if isinstance(self.perspective, str) else None

    def pap(self, embedded: Sequence[float] | None) -> PAP | None:
        if self.perspective is None:
            return None
        return PAP(self.perspective if embedded is None else embedded, corpus=self.corpus, direction=self.direction)

    def search(
        self,
        retriever: SetSelectRetriever,
        embeddings: Embeddings,
        text: str,
        vector: list[float],
        pap: PAP | None,
    ) -> Search:
        searched = vector if pap is None else pap.project(vector).tolist()
        return Search(
            store=retriever.vectorstore,
            embeddings=embeddings,
            text=text,
            vector=searched,
            projected=pap is not None,
            fetch_k=self.fetch_k,
            store_kwargs=self.store_kwargs,
        )

    def choose(self, hits: Hits, query: list[float], pap: PAP | None) -> list[Document]:
        documents, vectors = _distinct(*hits)
        if not documents:
            return []
        candidates = Candidates(
            query,
            vectors,
            quality=None if self.quality is None else item_values(documents, self.quality, "quality"),
            ids=[document.id for document in documents],
            costs=None if self.costs is None else item_values(documents, self.costs, "costs"),
        )
        if pap is not None:
            candidates = pap.apply(candidates)
        known = set(self.shown)
        chosen = choose(
            candidates,
            self.selector,
            self.k,
            budget=self.budget,
            shown=[row for row, document in enumerate(documents) if document.id in known],
            score_threshold=self.score_threshold,
        )
        picks = zip(chosen.indices.tolist(), chosen.relevance.tolist(), chosen.gains.tolist(), strict=True)
        return [self._copy(documents[row], relevance, gain) for row, relevance, gain in picks]

    def _copy(self, document: Document, relevance: float, gain: float) -> Document:
        metadata = dict(document.metadata)
        if self.scores:
            metadata |= {"relevance_score": relevance, "selection_score": gain}
        return document.model_copy(update={"metadata": metadata})


def _sizes(k: Any, fetch_k: Any, budget: Any) -> tuple[int | None, int]:
    if k is None and budget is None:
        k = 4
    least = 1
    if k is not None:
        k = least = integer(k, "k")
        if k < 1:
            raise InvalidParameterError(f"k must be at least 1, got {k}")
    if fetch_k is None:
        return k, 50 if k is None else max(20, 5 * k)
    if integer(fetch_k, "fetch_k") < least:
        raise InvalidParameterError(f"fetch_k must be at least k={least}, got {fetch_k}: it is what k is chosen from")
    return k, int(fetch_k)


def _selector(selector: Any, search_type: str, rest: dict[str, Any]) -> Selector:
    """The selector; its parameters are taken out of ``rest``."""
    parameters = {name: rest.pop(name) for name in _all_parameters() if name in rest}
    wanted = search_type if selector is None else selector
    if wanted == "mmr" and not {"lambda_mult", "lambda_d"} & parameters.keys():
        # The migration from as_retriever(search_type="mmr") is to change the class and nothing else.
        parameters["lambda_mult"] = 0.5
    return resolve_selector(wanted, parameters)


def _threshold(score_threshold: Any) -> float | None:
    return None if score_threshold is None else number(score_threshold, "score_threshold (a cosine)", -1, 1)


def _budget(budget: Any, costs: Any) -> float | None:
    if budget is not None and costs is None:
        raise InvalidParameterError(
            "a budget needs costs: a metadata key, or a function such as costs=lambda d: len(d.page_content) / 4"
        )
    return None if budget is None else number(budget, "budget")


def _all_parameters() -> dict[str, None]:
    return dict.fromkeys(p for name in selector_names() for p in selector_parameters(name))


def _distinct(documents: Sequence[Document], vectors: Any) -> tuple[Sequence[Document], Any]:
    """Each id once, the first of them; documents without an id cannot be told apart and stay."""
    first: dict[Hashable, int] = {}
    rows = [
        row
        for row, document in enumerate(documents)
        if document.id is None or first.setdefault(document.id, row) == row
    ]
    if len(rows) == len(documents):
        return documents, vectors
    return [documents[row] for row in rows], [vectors[row] for row in rows]
