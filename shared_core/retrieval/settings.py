"""Every setting of a selection, declared once with its type, range, default and help.

The classes of both adapters inherit :class:`Settings`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, PlainValidator, ValidationError

from .._values import as_identifiers
from ..errors import InvalidParameterError, PerspectiveError, SetSelectError, quoted
from ..perspective import PAP
from ..scaling import Scale
from ..selection.route import DEFAULT_EXTRA_K, DEFAULT_MIN_K
from ..selectors.registry import Selector, SelectorName
from ..signals.extraction import PerspectiveExtractor, QueryParts
from .inputs import Queries, check_queries, refuse_unknown, where_to_pass_parameters

Perspective = (
    str | Sequence[float] | NDArray[Any] | Callable[[str], str | QueryParts | None] | PerspectiveExtractor | None
)
Positive = Annotated[int, Field(ge=1, lt=2**63)]
Share = Annotated[float, Field(ge=0, le=1)]


def as_shown(ids: Iterable[Hashable] | None) -> tuple[str, ...]:
    """``ids`` as strings, as documents and nodes have them; those that a user reads from metadata may be integers."""
    return tuple(map(str, as_identifiers(ids, "shown")))


def _as_retrievers(value: Any) -> tuple[Any, ...]:
    """The retrievers of a list, or a single one; the adapter checks that they are retrievers of its framework."""
    return tuple(value) if isinstance(value, (list, tuple)) else () if value is None else (value,)


def _check_item_value(value: Any) -> Any:
    if value is None or isinstance(value, (str, Mapping)) or callable(value):
        return value
    raise ValueError("Input should be a metadata key, a mapping by id or a function")


def _check_perspective(value: Any) -> Any:
    """``value``, with a vector as a tuple, which pydantic can compare and hash."""
    if isinstance(value, str) and not value.strip():
        raise PerspectiveError("perspective is an empty text; use None for no perspective")
    if value is None or isinstance(value, str) or callable(value):
        return value
    return tuple(PAP(value).perspective.tolist())  # type: ignore[union-attr]


# Pydantic would copy a large mapping, and would warn when it writes an iterable.
AsItIs = PlainSerializer(lambda value: value)
# A metadata key, values by the items' ids, or a function of the item.
Values = Annotated[str | Mapping[Any, Any] | Callable[[Any], Any] | None, PlainValidator(_check_item_value), AsItIs]


class Settings(BaseModel):
    """The settings that all classes of both adapters have, under the same names.

    A *document* is a LangChain document, a LlamaIndex node, or an example of an example selector. *Values of the
    documents* are a metadata key, a function that gets the document, or a mapping by id.
    """

    selector: Annotated[SelectorName | str | Selector | None, PlainValidator(lambda value: value), AsItIs] = None
    """A selector's name, ``"coverage"`` by default, or an object with its parameters: ``Coverage(word_weight=0)``,
    ``NDPP(kernel="kernel.safetensors")``, or one of your own. :class:`Coverage` looks for the words of the question in
    the text that was embedded, and reads which documents lead to each other. Example selectors do so only if ``title``,
    ``identifier``, ``links`` or ``follow`` is set, or another ``reference_weight`` than 1; they have no neighbours."""

    cover: Values = None
    """For ``"coverage"``: what the set has to cover besides the words (labels, products), as values of the documents,
    each one value or a list. A value that is covered counts once."""

    title: Values = None
    """The name under which other documents mention a document. By default the metadata that loaders and splitters write
    (``"title"``, ``"Header 1"``, ``"file_name"``, ...), else its heading, or the name with which its text begins (see
    :func:`read_name`). Documents with the same title are parts of one document, and never refer to each other."""

    identifier: Values = None
    """The number or code under which other documents cite a document, or a list of several. By default the metadata
    ``"section"``, ``"clause"``, ``"article"``, ``"rule"``, ``"number"``, ``"key"`` or ``"code"``,
    and the number or code with which its text begins. A number ("Rule 4.5.1") means a document of the same ``source``,
    unless another one is named beside it."""

    links: Values = None
    """Which other documents a document links to: ids, titles, or URLs that others have as ``"source"`` or ``"url"``;
    one, a list, or a JSON list. A link may be a dictionary with ``"node_id"``, ``"url"`` or ``"target"``. A
    document with links refers to what they lead to, and to nothing else."""

    lambda_mult: Share | None = None
    """For ``"mmr"``, in [0, 1]: the weight of relevance against novelty, 0.5 by default."""

    queries: Annotated[Queries, PlainValidator(check_queries), AsItIs] = None
    """Sub-questions, which the set has to answer besides the question: a list of texts, or a function or LangChain
    Runnable that gets the question and returns such a list. An async function needs an async call. Each is embedded and
    searched for as a query. The relevance of a document is its highest cosine with any of the queries, and the words of
    all of them count. ``"vrsd"`` takes one question only."""

    relevance: Values = None
    """What a document is worth for the query, higher is better: ``"cosine"`` (default), or values of the documents
    (``"relevance_score"`` holds the score of LangChain's rerankers). In LlamaIndex ``"score"`` is the score that each
    node came with. ``"vrsd"`` takes the cosine only."""

    relevance_scale: Scale | None = "minmax"
    """How a given relevance is scaled for the selector: ``"minmax"``, ``"rank"``, ``"sigmoid"``, ``"zscore"`` or None;
    see :func:`rescale`. Results and events hold the relevance as it was given."""

    quality: Values = None
    """For ``"mmr"``: how good a document is by itself, as values of the documents."""

    score_threshold: float | None = None
    """The lowest relevance that a document may have: a cosine, or what ``relevance`` gives, before it is scaled."""

    shown: Annotated[Iterable[Hashable], PlainValidator(as_shown), AsItIs] = ()
    """Ids of documents that the reader has seen already. Those that the search finds count as picked, and are not
    returned."""

    budget: float | None = None
    """The sum of ``costs`` that the set must not exceed. Without a number of documents only the budget ends the
    selection."""

    costs: Values = None
    """What a document takes from the ``budget`` (its tokens, for example), as values of the documents."""

    min_gain: Share | None = None
    """In [0, 1]: after ``min_k`` documents, the set ends before the first one whose gain is below this share of the
    first gain; see :func:`select`. ``k`` is then the most that is selected. None (default) selects ``k``."""

    min_k: Annotated[int, Field(ge=0, lt=2**63)] = DEFAULT_MIN_K
    """With ``min_gain``, how many documents are selected in any case, where there are as many. With 0 and ``shown``
    there may be none for ``"coverage"``."""

    max_per_source: Positive | None = None
    """The most documents of one ``source``, ``shown`` ones included."""

    source: Values = None
    """Where a document comes from, for ``max_per_source`` and for citations by number. By default LangChain's
    ``"source"``, and in LlamaIndex the document that contains the node. For ``max_per_source``, a document without a
    source is a source of its own."""

    drop_duplicates: bool = True
    """Documents with the same text count once: the one that ``prefer`` says, else the one with the highest
    ``relevance`` if that is given, else the first that the store returns."""

    drop_near_duplicates: Annotated[float, Field(ge=-1, le=1)] | None = None
    """No two documents have a cosine above this value, in [-1, 1]."""

    prefer: Values = None
    """Which of several copies stays: among candidates with the same text, or with a cosine above
    ``drop_near_duplicates``, the one with the highest value. A value is a number, a version (``"1.10.0"``), or a
    date: a datetime, or a string as ISO (``"2026-01-31"``), mail or PDF write it. No value is the lowest. A copy that
    costs more than the whole ``budget`` is not preferred."""

    order: Literal["selection", "relevance", "nearest_last", "long_context"] = "selection"
    """The order of the result: as selected, the most relevant first (``"relevance"``), the most relevant last
    (``"nearest_last"``), or the most relevant at both ends (``"long_context"``)."""

    perspective: Annotated[Perspective, PlainValidator(_check_perspective), AsItIs] = None
    """What is projected out of the query and its ``queries`` before the search (PAP, perspective-aware projection): a
    text, its embedding, or a function of the query that returns the text, ``QueryParts``, or None for no projection,
    such as an extractor. The words of a text that is removed do not count for ``"coverage"``."""

    perspective_vector: Literal["text", "difference"] = "text"
    """The vector that is projected out: the embedding of the perspective's text, or the query's embedding minus that of
    its root (the query without its perspective). The difference needs ``QueryParts`` or an extractor."""

    direction: Literal["remove", "emphasize"] = "remove"
    """Remove the perspective from the query, or give it more weight."""

    corpus: bool = False
    """Project the candidates too (PAP+)."""

    scores: bool = False
    """Add to the metadata of copies of the documents ``selection_score`` (the gain), ``relevance_score``,
    ``selection_reason`` (why the document was selected, in words), and where they exist ``selection_referred_by`` (the
    name of the document that leads to this one) and ``selection_serves`` (the query that it serves best). A key that is
    there keeps its value; where it is ``relevance_score``, the relevance that counted is ``selection_relevance``."""

    shadow: bool = False
    """Return what was there before the selection: the ``k`` results of the store's own search, or what a postprocessor
    or compressor got. The event, and a line of JSON in the log ``setselect.shadow``, say what would have been selected.
    An error of the selection goes to the log ``setselect``. The store is searched twice."""

    model_config = ConfigDict(arbitrary_types_allowed=True, allow_inf_nan=False, use_attribute_docstrings=True)

    # The name of the setting that says how many are selected.
    size_name: ClassVar[str] = "k"
    # Whether documents refer to each other where no setting says so; examples do not.
    _refer_by_default: ClassVar[bool] = True
    # What to do about arguments that a class does not have.
    _remedies: ClassVar[Mapping[str, str]] = {}

    # The class whose arguments the fields are, if it is another one.
    _owner: ClassVar[str] = ""

    # Type checkers read the arguments from the fields.
    if not TYPE_CHECKING:

        def __init__(self, **values: Any) -> None:
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise _as_parameter_error(error, self.size_name) from None

    @classmethod
    def _refuse_unknown(cls, names: Iterable[str]) -> None:
        remedies = {**where_to_pass_parameters(), **cls._remedies}
        refuse_unknown(cls._owner or cls.__name__, names, cls.model_fields, remedies)

    # A class keeps what it makes from its fields under "_made", until a field changes.
    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in type(self).model_fields:
            self.__dict__.pop("_made", None)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Pydantic's copy; an ``update`` counts at the next call."""
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop("_made", None)
        return copied


class Fetching(BaseModel):
    """The settings of the classes that search."""

    fetch_k: Positive | None = None
    """How many candidates to select from; by default max(50, 5k), or 50 if only a budget is given. The number of
    ``shown`` ids is added. With ``queries`` it is shared out: each of q queries fetches fetch_k / q candidates, and at
    least as many as are selected and ``shown``."""

    follow: bool = False
    """For ``"coverage"``: search once for what the selected documents lead to and no candidate is (names, links,
    numbers and codes, neighbours), add what is found to the candidates, and select again. It costs one more batch of
    embeddings and at most 20 searches; the page on references says what is looked up, and in which stores."""

    extra_retrievers: Annotated[Any, PlainValidator(_as_retrievers), AsItIs] = ()
    """Retrievers of the framework, a list or a single one, such as a search by words (BM25) or over a second store. The
    first ``extra_k`` documents of each join the candidates of the vector search. They get the text of the question, and
    each of the ``queries``, for which ``extra_k`` is shared out. They run beside the vector search in async code. The
    page on keyword search says when documents are the same, and what happens to filters and errors."""

    keyword_search: bool = False
    """Search the documents of the store by words (BM25) too; the ``extra_k`` best ones that the filter lets in join the
    candidates. The page on keyword search says when the index knows a change, and which stores can be listed;
    ``refresh()`` reads everything again. All retrievers over one store object share the index, which is not pickled. It
    needs the extra ``words``."""

    extra_k: Positive = DEFAULT_EXTRA_K
    """How many documents of each of the ``extra_retrievers``, and of ``keyword_search``, join the candidates. The
    retriever's own number (``k``, ``similarity_top_k``) has to be as high."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class Joining(BaseModel):
    """The settings of the classes that return documents: which of them stand next to each other, and what for."""

    neighbours: Values = None
    """Which documents stand next to each other, for :class:`Coverage` and ``join_neighbours``: the number of a document
    among the parts of its ``source``. By default what splitters write: a node's previous and next node in LlamaIndex,
    else ``"chunk_index"``, ``"chunk"``, ``"seq_num"`` or ``"start_index"``."""

    join_neighbours: bool = False
    """Return neighbours that are selected together as one document: their texts in reading order, with what two of them
    share once, and their metadata merged. The keys of ``selection_joined`` in its metadata are the ids of its parts,
    for ``shown``. Its parts count for the number of documents and for the ``budget``."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class Call(Settings, Fetching, Joining):
    """All settings of one call; :class:`Request` uses them."""

    k: Positive | None = None


def _as_parameter_error(error: ValidationError, size_name: str) -> Exception:
    """The first mistake that pydantic found, as an error of setselect that names the setting."""
    first = error.errors()[0]
    own = first.get("ctx", {}).get("error")
    if isinstance(own, SetSelectError):
        return own
    name = ".".join(map(str, first["loc"][:1])) or error.title
    got = "" if first["type"] == "missing" or not first["loc"] else f", got {quoted(first['input'])}"
    # A retriever in place of its store.
    got += ": pass its .vectorstore" if "vectorstore" in getattr(first["input"], "__dict__", ()) else ""
    name = size_name if name == "k" else name
    return InvalidParameterError(f"{name}: {first['msg'].removeprefix('Value error, ')}{got}")
