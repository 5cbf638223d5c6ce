"""The queries of a table as vectors, with what is wrong with a row instead of a failure of all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...errors import InvalidInputError
from ._settings import PICKED, Settings

Embed = Callable[[list[str]], NDArray[np.float32]]
Rows = tuple[NDArray[np.float32], list[str | None]]
# So many vectors in a row, all of one other length than the index's, are no accident of a row.
SAMPLE = 100


def check_schema(schema: Any, settings: Settings, where: str, dimension: int | None = None) -> None:
    """That the columns are there and of a type that can be read.

    Raises
    ------
    InvalidInputError
        One is not; the message names the column and what there is.
    """
    twice = [name for name in settings.columns if schema.names.count(name) > 1]
    if twice:
        raise InvalidInputError(f"{where}: there are {schema.names.count(twice[0])} columns {twice[0]!r}; rename one")
    missing = [name for name in settings.columns if name not in schema.names]
    if missing:
        hint = " (row numbers take its place with id_column=None)" if missing == [settings.id_column] else ""
        raise InvalidInputError(f"{where}: no column {', '.join(missing)}{hint}; there is {', '.join(schema.names)}")
    if settings.text_column is not None:
        kind = schema.field(settings.text_column).type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise InvalidInputError(f"{where}: column {settings.text_column!r} must hold text, holds {kind}")
    if settings.vector_column is not None:
        kind = schema.field(settings.vector_column).type
        lists = _lists_in(kind)
        if lists is None or not pa.types.is_floating(lists.value_type):
            raise InvalidInputError(
                f"{where}: column {settings.vector_column!r} must hold lists of floats, holds {kind}"
            )
        length = lists.list_size if pa.types.is_fixed_size_list(lists) else getattr(kind, "shape", (dimension,))[0]
        if length is not None and dimension is not None and length != dimension:
            _other_length(where, settings.vector_column, length, dimension)


def check_lengths(column: Any, name: str, where: str, dimension: int) -> None:
    """That the first vectors of a file are not all of one other length: each row would have an error, to the last.

    Raises
    ------
    InvalidInputError
        They are.
    """
    lengths = pc.unique(pc.list_value_length(_lists(column))).to_pylist()
    if len(column) >= SAMPLE and len(lengths) == 1 and lengths[0] not in (None, 0, dimension):
        _other_length(where, name, lengths[0], dimension)


def vectors_given(column: Any, dimension: int | None) -> Rows:
    """The vectors of a list column; of a bad row zeros and the reason.

    Parameters
    ----------
    column : pyarrow ChunkedArray of lists of floats, n rows; Ray's and Arrow's tensors of one dimension are such
    dimension : int or None
        None takes the length that most rows have.

    Returns
    -------
    vectors : float32, shape (n, d)
    problems : list of n, None where the row is sound

    Examples
    --------
    >>> vectors, problems = vectors_given(pa.chunked_array([[[1.0, 2.0], [1.0], None, [0.0, 0.0]]]), 2)
    >>> vectors[0].tolist(), problems[:3]
    ([1.0, 2.0], [None, 'the vector has length 1, not 2', 'the vector is null'])
    """
    lists = _lists(column)
    null = lists.is_null().to_numpy(zero_copy_only=False)
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    # What lies behind a null list is left out of the flat values, as its length is.
    flat = lists.flatten().to_numpy(zero_copy_only=False)
    if dimension is None:
        dimension = int(np.bincount(lengths[~null]).argmax()) if (~null).any() else 0
    whole = ~null & (lengths == dimension)
    vectors = np.zeros((len(lists), dimension), np.float32)
    starts = np.cumsum(lengths) - lengths
    with np.errstate(over="ignore"):
        if whole.all():
            vectors[:] = flat.reshape(vectors.shape)
        else:
            vectors[whole] = flat[starts[whole, None] + np.arange(dimension)]
    problems = _problems_of(vectors)
    for i in np.flatnonzero(~whole):
        problems[i] = "the vector is null" if null[i] else f"the vector has length {lengths[i]}, not {dimension}"
    vectors[[problem is not None for problem in problems]] = 0
    return vectors, problems


def vectors_of_texts(column: Any, embed: Embed, dimension: int | None) -> Rows:
    """The vectors of a text column, through an embedding model; of a bad row zeros and the reason.

    Raises
    ------
    InvalidInputError
        The model's vectors are not as long as the index's.
    """
    texts = column.to_pylist()
    problems: list[str | None] = [
        "the text is null" if text is None else None if text.strip() else "the text is blank" for text in texts
    ]
    good = [i for i, problem in enumerate(problems) if problem is None]
    if not good:
        return np.zeros((len(texts), dimension or 0), np.float32), problems
    found = np.asarray(embed([texts[i] for i in good]), np.float32)
    if dimension is not None and found.shape[1] != dimension:
        raise InvalidInputError(
            f"the model's vectors have length {found.shape[1]}, the index's {dimension}: take the model that filled it"
        )
    vectors = np.zeros((len(texts), found.shape[1]), np.float32)
    vectors[good] = found
    for i, problem in zip(good, _problems_of(found), strict=True):
        problems[i] = problem
    return vectors, problems


def written_schema(settings: Settings, schema: Any) -> Any:
    """The schema of what is written for queries of this schema."""
    own = pa.int64() if settings.id_column is None else schema.field(settings.id_column).type
    # A vector database may call its documents anything; all its parts are to have one type.
    ids = pa.string() if callable(settings.index) else pa.int64()
    kinds = (pa.list_(ids), pa.list_(pa.float64()), pa.list_(pa.float64()), pa.string())
    return pa.schema([(settings.name_of_ids, own), *zip(PICKED, kinds, strict=True)])


def _problems_of(vectors: NDArray[np.float32]) -> list[str | None]:
    problems: list[str | None] = [None] * len(vectors)
    for i in np.flatnonzero(~np.isfinite(vectors).all(axis=1)):
        problems[i] = f"the vector holds {vectors[i][~np.isfinite(vectors[i])][0]} (as float32)"
    for i in np.flatnonzero(~vectors.any(axis=1)):
        problems[i] = "the vector is zero and points nowhere"
    return problems


def _lists_in(kind: Any) -> Any:
    """The type of list that rows of this type are stored in; None where they are something else."""
    if isinstance(kind, pa.BaseExtensionType):
        # Ray's tensors, which arrays become in its batches, and Arrow's; those of more dimensions are no vectors.
        if getattr(kind, "ndim", len(getattr(kind, "shape", ()))) != 1:
            return None
        kind = kind.storage_type
        if pa.types.is_struct(kind):
            # Ray's tensors of several lengths.
            kind = kind.field("data").type if kind.get_field_index("data") >= 0 else None
    of_lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return kind if kind is not None and any(is_one(kind) for is_one in of_lists) else None


def _lists(column: Any) -> Any:
    """A column that :func:`_lists_in` finds lists in as one array of them."""
    lists = column.combine_chunks()
    # pyarrow hands out a chunked array again where there is no chunk at all.
    if isinstance(lists, pa.ChunkedArray):
        lists = pa.concat_arrays(lists.chunks) if lists.num_chunks else pa.array([], _lists_in(column.type))
    if isinstance(lists, pa.ExtensionArray):
        lists = lists.storage
        if pa.types.is_struct(lists.type):
            lists = pc.struct_field(lists, "data")
    return lists


def _other_length(where: str, name: str, length: int, dimension: int) -> NoReturn:
    raise InvalidInputError(
        f"{where}: column {name!r} holds vectors of length {length}, the index of {dimension}: they most likely come "
        "from different embedding models"
    )
