"""The settings that all LangChain classes share, and the request that follows from them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import is_
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from pydantic import Field
from pydantic.fields import FieldInfo

from shared_core import InvalidParameterError
from shared_core.retrieval.inputs import nearest_name, where_to_pass_parameters
from shared_core.retrieval.request import Request
from shared_core.retrieval.settings import Call, Positive, Settings, Values
from shared_core.selectors.registry import DEFAULT_SELECTOR, SelectorName

# How the question in a dict is passed on in a chain.
OF_DICT = "pick it out in the chain, itemgetter({key!r}) | retriever"


class SelectionSettings(Settings):
    """The fields of all LangChain classes. ``search_kwargs`` may hold the same settings, under the same names."""

    search_type: SelectorName | str = DEFAULT_SELECTOR
    """LangChain's word for ``selector``: a selector's name."""

    search_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Settings, as in ``as_retriever``. Other keys (``filter``, for example) go to the store unchanged."""

    k: Positive | None = None
    """How many documents, 4 by default; with a ``budget`` and no ``k``, as many as fit."""

    source: Values = "source"

    embeddings: Embeddings | None = None
    """The embedding model, for stores that have none."""

    @staticmethod
    def _view(document: Document) -> Any:
        """What a function that is the value of a setting gets."""
        return document

    # Type checkers read the arguments from the fields.
    if not TYPE_CHECKING:

        def __init__(self, **settings: Any) -> None:
            own = type(self).model_fields
            self._refuse_unknown(settings)
            # LangChain's configurable_fields passes all fields, those with their default included.
            is_copy = own.keys() <= settings.keys()
            given = {name for name in settings if not (is_copy and _is_default(settings[name], own[name]))}
            kwargs = settings.get("search_kwargs") or {}
            for name in kwargs.keys() & given:
                raise InvalidParameterError(f"{name} is given twice: as an argument and in search_kwargs")
            if {"search_type", "selector"} <= given | kwargs.keys() and settings.get("selector", "") is not None:
                raise InvalidParameterError("give search_type or selector, not both")
            super().__init__(**settings)
            _ = self._configured  # checks the settings together

    @property
    def _configured(self) -> tuple[Request, dict[str, Any]]:
        """The request of a call without arguments, and the store's arguments; made again if a field has changed."""
        # Users change search_kwargs in place: retriever.search_kwargs["k"] = 3.
        made: tuple[Request, dict[str, Any]]
        seen, made = self.__dict__.get("_made", (None, None))
        contents = list_contents(self.search_kwargs) if self.search_kwargs else []
        if seen is None or len(seen) != len(contents) or not all(map(is_, seen, contents)):
            made = self._configure({}, told=() if seen is None else made[0].without_effect)
            self.__dict__["_made"] = contents, made
        return made

    def _configure(self, kwargs: Mapping[str, Any], *, told: Sequence[str]) -> tuple[Request, dict[str, Any]]:
        """The request of a call with the arguments ``kwargs``, and those of them that are for the store.

        Warnings that were ``told`` are not repeated.
        """
        configured = {name: getattr(self, name) for name in Call.model_fields.keys() & type(self).model_fields.keys()}
        if self.selector is None:
            configured["selector"] = self.search_type
        in_kwargs, for_store = self._split(self.search_kwargs)
        configured |= in_kwargs
        of_call, more_for_store = self._split(kwargs)
        if of_call.get("selector", configured["selector"]) != configured["selector"]:
            configured["lambda_mult"] = None  # It does not fit another selector.
        call = Call(**configured | of_call)
        self._check_searches(call)
        made = Request(call, view=self._view, refer_by_default=self._refer_by_default, told=told)
        return made, {**for_store, **more_for_store}

    def _check_searches(self, call: Call) -> None:
        """Refuse searches that cannot be made."""

    def _split(self, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Those of the arguments that are settings, and the others, which are for the store."""
        fields, rest = type(self).model_fields, dict(given)
        settings = {name: rest.pop(name) for name in given if name in Call.model_fields and name in fields}
        if "search_type" in rest:
            if settings.get("selector") is not None:
                raise InvalidParameterError("give search_type or selector, not both")
            settings["selector"] = rest.pop("search_type")
        if settings.get("selector", "") is None:
            del settings["selector"]
        for_store = rest.pop("vectorstore_kwargs", None) or {}
        for name in rest.keys() & fields:
            raise InvalidParameterError(
                f"{name} is an argument of {type(self).__name__} itself, not of a call. An argument of the store that "
                "has such a name goes into vectorstore_kwargs"
            )
        refuse_misspelt(rest, Call.model_fields.keys() & fields.keys())
        return settings, rest | for_store


def refuse_misspelt(names: Iterable[str], known: Collection[str]) -> None:
    """Refuse arguments of the store that are like settings: a store that takes any argument would ignore them."""
    for name in names:
        near, remedy = nearest_name(name, known), where_to_pass_parameters().get(name)
        if near is not None or remedy is not None:
            hint = f"{remedy}." if near is None else f"did you mean {near!r}?"
            raise InvalidParameterError(
                f"there is no {name!r}: {hint} Arguments of the store go into vectorstore_kwargs"
            )


def list_contents(kwargs: Mapping[str, Any]) -> list[Any]:
    """Each argument, and what its list, set, or dict of further arguments holds; a caller may change it in place.

    A mapping by id is one argument, because each call reads it anew.
    """
    contents: list[Any] = []
    for name, value in kwargs.items():
        contents += name, value
        if isinstance(value, (list, set)):
            contents += value
        elif name.endswith("_kwargs") and isinstance(value, Mapping):
            contents += list_contents(value)
    return contents


def _is_default(value: Any, field: FieldInfo) -> bool:
    """Whether a field has its default. After pickling or JSON, an equal string is another object."""
    default = field.get_default(call_default_factory=True)
    return value is default or (isinstance(value, (str, int, float, tuple, dict)) and bool(value == default))
