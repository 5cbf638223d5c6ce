"""What the LangChain classes share: their settings as fields, and the way from documents to the chosen ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from pydantic import BaseModel, ConfigDict

from shared_core import PAP, InvalidInputError, InvalidParameterError, Selection
from shared_core.retrieval._memory import RequestMemory
from shared_core.retrieval._names import CHOICE_KEYS, all_parameters
from shared_core.retrieval.items import copy_with
from shared_core.retrieval.request import WIDEST, Asked, Request
from shared_core.signals.extraction import aparts_of, parts_of, text_to_embed

from .stores.source import Hits

DEFAULT_SOURCE = "source"
EVENT = "setselect"
_FIELDS = ("selector", "perspective", "perspective_vector", "direction", "corpus", "quality", "costs", "source")


class ChoiceSettings(BaseModel):
    """The settings of a choice as fields; those without a field of their own go into ``search_kwargs``."""

    search_type: str = "vrsd"
    search_kwargs: dict[str, Any] = {}
    selector: Any = None
    perspective: Any = None
    perspective_vector: str = "text"
    direction: str = "remove"
    corpus: bool = False
    quality: Any = None
    costs: Any = None
    source: Any = DEFAULT_SOURCE
    embeddings: Embeddings | None = None
    scores: bool = True

    model_config = ConfigDict(arbitrary_types_allowed=True)

    def __init__(self, **settings: Any) -> None:
        own = type(self).model_fields
        fields = {name: value for name, value in settings.items() if name in own}
        more = {name: value for name, value in settings.items() if name not in own}
        known = {*CHOICE_KEYS, *all_parameters()}
        for name in more:
            if name not in known:
                raise InvalidParameterError(
                    f"{type(self).__name__} has no argument {name!r}; it has {', '.join(sorted(known | set(own)))}"
                )
        # LangChain's configurable_fields makes a class anew from all its fields, those left at their default as well.
        rebuilt = own.keys() <= fields.keys() and fields["search_type"] == own["search_type"].default
        if fields.get("selector") is not None and "search_type" in fields and not rebuilt:
            raise InvalidParameterError("give search_type or selector, not both")
        perspective = fields.get("perspective")
        if perspective is not None and not isinstance(perspective, str) and not callable(perspective):
            # A tuple compares and hashes, which LangChain does with fields, and an array does not.
            fields["perspective"] = tuple(PAP(perspective).perspective.tolist())  # type: ignore[union-attr]
        if more:
            fields["search_kwargs"] = {**(fields.get("search_kwargs") or {}), **more}
        super().__init__(**fields)
        # Here and not in a validator, where pydantic would wrap the error in one of its own.
        self._request({})

    @cached_property
    def _memory(self) -> RequestMemory:
        # Not a private attribute: pydantic would compare those when it compares two models.
        return RequestMemory()

    def _request(self, kwargs: dict[str, Any]) -> tuple[Request, bool, dict[str, Any]]:
        """What one call asks for, whether to write scores, and what is left for the store."""
        defaults = {
            **{name: getattr(self, name) for name in _FIELDS},
            "search_type": self.search_type,
            "scores": self.scores,
            **self.search_kwargs,
        }
        if "search_type" in kwargs and kwargs.get("selector") is not None:
            raise InvalidParameterError("give search_type or selector, not both")
        if "selector" in kwargs or kwargs.get("search_type", defaults["search_type"]) != defaults["search_type"]:
            # Another selector for one call: the parameters of the usual one are not its own.
            defaults = {name: value for name, value in defaults.items() if name not in all_parameters()}
        if "search_type" in kwargs:
            defaults["selector"] = None
        settings = {**defaults, **kwargs}
        name, scores = settings.pop("search_type"), settings.pop("scores")
        if settings["selector"] is None:
            settings["selector"] = name
        request, rest = self._memory.parse(settings)
        for name in rest:
            if name in type(self).model_fields:
                raise InvalidParameterError(f"{name} is set when {type(self).__name__} is made, not for one call")
        return request, scores, rest


def ask(request: Request, embeddings: Embeddings, query: str) -> Asked:
    """Embed the query, and what its perspective needs."""
    parts = None if request.perspective is None else parts_of(request.perspective, query)
    text = text_to_embed(parts, query, request.perspective_vector)
    vector = embeddings.embed_query(query)
    return request.asked(vector, None if text is None else embeddings.embed_query(text))


async def aask(request: Request, embeddings: Embeddings, query: str) -> Asked:
    """As :func:`ask`."""
    parts = None if request.perspective is None else await aparts_of(request.perspective, query)
    text = text_to_embed(parts, query, request.perspective_vector)
    vector = await embeddings.aembed_query(query)
    return request.asked(vector, None if text is None else await embeddings.aembed_query(text))


@dataclass(frozen=True, eq=False)
class Chosen:
    """Copies of the chosen documents in the order of choice, and why; no selection where there was nothing."""

    documents: list[Document]
    ids: list[str | None]
    selection: Selection | None
    request: Request
    fetch_k: int
    candidates: int
    wider: int | None


def choose_documents(
    request: Request,
    hits: Hits,
    asked: Asked,
    *,
    ids: Sequence[str | None],
    scores: bool,
    fetch_k: int,
    widest: int = WIDEST,
) -> Chosen:
    """Choose among documents with their ids and vectors."""
    documents, vectors = hits
    if not documents:
        return Chosen([], [], None, request, fetch_k, 0, None)
    if request.shown:
        if all(name is None for name in ids):
            raise InvalidInputError(
                "shown= goes by the documents' ids, and none of the candidates tells one: store documents with ids, or "
                "register_vector_source(..., id_of=...) if they have theirs in the metadata"
            )
        # Ids in the metadata may be integers.
        request = replace(request, shown=tuple(map(str, request.shown)))
    choice = request.choose(documents, ids, vectors, asked)
    selection = choice.selection
    reasons = zip(choice.items, selection.relevance.tolist(), selection.gains.tolist(), strict=True)
    copies = [_copy(document, cosine, gain, scores) for document, cosine, gain in reasons]
    wider = request.wider(choice, len(documents), fetch_k, widest)
    names = [ids[row] for row in selection.indices.tolist()]
    return Chosen(copies, names, selection, request, fetch_k, len(documents), wider)


def event(chosen: Chosen, source: str) -> dict[str, Any]:
    """What a callback handler gets to see of a choice, under the name ``setselect``."""
    selection = chosen.selection
    return {
        "selector": repr(chosen.request.selector),
        "k": chosen.request.k,
        "fetch_k": chosen.fetch_k,
        "candidates": chosen.candidates,
        "vector_source": source,
        "ids": chosen.ids,
        "gains": [] if selection is None else selection.gains.tolist(),
        "relevance": [] if selection is None else selection.relevance.tolist(),
        "objective": None if selection is None else selection.objective,
        "filled_from": None if selection is None else selection.filled_from,
    }


def _copy(document: Document, cosine: float, gain: float, scores: bool) -> Document:
    metadata = dict(document.metadata)
    if scores:
        metadata["relevance_score"], metadata["selection_score"] = cosine, gain
    copied: Document = copy_with(document, {"metadata": metadata})
    return copied
