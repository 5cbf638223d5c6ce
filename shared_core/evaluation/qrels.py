"""Relevance judgements (qrels) in the shapes that benchmarks publish: BEIR folders, and TREC files with subtopics.

ir_datasets and ir_measures also read TREC files. Their errors do not name the line, and they cannot read your own BEIR
folder.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from .._argument_names import argument_name
from .._parsing import parse_object
from .._validation import as_float, quoted
from ..errors import InvalidInputError, InvalidParameterError
from .corpus import Document, Problem, Query, ReadResult, as_name, read_documents, read_queries, value_of
from .reading import JSON_SUFFIXES, parse_lines, unpacked

# A first line whose last column has one of these names is a head.
_HEADS = ("score", "relevance", "rel", "grade", "judgement", "judgment", "label")
# The keys of a JSON line, as MTEB and ir_datasets write them.
_KEYS = (("query-id", "query_id", "qid"), ("corpus-id", "corpus_id", "doc_id", "docid"), _HEADS)
# What TREC files without subtopics write in every line where others write the subtopic.
_NO_SUBTOPIC = frozenset({"0", "Q0"})


class BeirFiles(NamedTuple):
    """The files of a BEIR folder: its documents, its queries, and the judgements of one split."""

    documents: Path
    queries: Path
    qrels: Path


class Relevant(NamedTuple):
    """The ids of the documents that are relevant to a query and, for each of its subtopics, of those that cover it."""

    documents: tuple[str, ...]
    subtopics: dict[str, tuple[str, ...]]


class JudgedCorpus(NamedTuple):
    """Documents and judged queries, the problems of lines that were left out, and notes on queries that were.

    ``read`` is all that was read of the documents and of the queries, if they are from files.
    """

    documents: list[Document]
    queries: list[Query]
    problems: list[Problem]
    notes: list[str]
    read: tuple[ReadResult[Document], ReadResult[Query]] | None = None


def beir_files(folder: Path | str, split: str | None = None, qrels: Path | str | None = None) -> BeirFiles:
    """Find the files of a BEIR folder: ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/<split>.tsv``.

    Parameters
    ----------
    folder : path
        A folder with ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/``. The judgements may also be ``.jsonl``, as in
        MTEB, or ``.csv``, and each file may be packed (``.gz``).
    split : str, optional
        Name of a file in ``qrels/``, without its suffix. Default: "test", or the only one that is there.
    qrels : path, optional
        Another file of judgements, in place of those in the folder.

    Raises
    ------
    InvalidInputError
        The folder lacks one of the files.
    InvalidParameterError
        There is no such split, or there are several, none of them "test", and none was named.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "qrels").mkdir()
    >>> for name in ("corpus.jsonl", "queries.jsonl", "qrels/dev.tsv"):
    ...     (folder / name).touch()
    >>> beir_files(folder).qrels.name
    'dev.tsv'
    """
    folder = Path(folder)
    documents, queries = (
        packed if (packed := folder / f"{name}.jsonl.gz").is_file() else folder / f"{name}.jsonl"
        for name in ("corpus", "queries")
    )
    for file in (documents, queries):
        if not file.is_file():
            raise InvalidInputError(
                f"{folder} is not a BEIR folder: it holds no {file.name} (a BEIR folder holds corpus.jsonl, "
                "queries.jsonl and qrels/test.tsv)"
            )
    if qrels is not None:
        return BeirFiles(documents, queries, Path(qrels))
    kinds = {suffix: [*(folder / "qrels").glob(f"[!.]*{suffix}*")] for suffix in (*JSON_SUFFIXES, ".csv", ".tsv")}
    found = [file for suffix, of_kind in kinds.items() for file in sorted(of_kind) if unpacked(file).suffix == suffix]
    # Of several files of one split, that of BEIR's own kind counts.
    files = {unpacked(file).stem: file for file in found}
    if not files:
        raise InvalidInputError(f"{folder} holds no judgements: there is no qrels/test.tsv")
    if split is None:
        split = "test" if "test" in files or len(files) > 1 else next(iter(files))
    if split not in files:
        raise InvalidParameterError(
            f"{argument_name('split')} = {quoted(split)}, but {folder / 'qrels'} holds only "
            f"{', '.join(map(quoted, files))}: name one of them"
        )
    return BeirFiles(documents, queries, files[split])


def read_judged(
    documents: Path | str,
    queries: Path | str,
    qrels: Path | str,
    *,
    text_key: str | None = None,
    id_key: str | None = None,
    query_key: str | None = None,
    query_id_key: str | None = None,
    scores_key: str | None = None,
) -> JudgedCorpus:
    """Read documents, queries and the judgements of these queries.

    ``gold`` and ``subtopics`` of the queries come from the judgements alone. Queries without a relevant document are
    left out, and a note counts them.

    Parameters
    ----------
    documents, queries, qrels : path
        See :func:`~shared_core.evaluation.corpus.read_documents`, :func:`~shared_core.evaluation.corpus.read_queries`
        and :func:`read_qrels`. :func:`beir_files` finds those of a BEIR folder.
    text_key, id_key, query_key, query_id_key, scores_key : str, optional
        The keys or columns of files of another shape: of the text and the id of a document, of those of a query, and of
        the scores of a reranker.

    Raises
    ------
    InvalidInputError
        A file cannot be read, a line of ``qrels`` is wrong, none of its query ids is the id of a query, or no query has
        a relevant document.
    InvalidParameterError
        The suffix of ``documents`` or ``queries`` is none of those that can be read.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "qrels").mkdir()
    >>> _ = (folder / "corpus.jsonl").write_text('{"_id": "d1", "title": "Bread", "text": "is baked."}')
    >>> _ = (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "How is bread made?"}')
    >>> _ = (folder / "qrels/test.tsv").write_text("query-id\\tcorpus-id\\tscore\\nq1\\td1\\t1\\n")
    >>> corpus = read_judged(*beir_files(folder))
    >>> corpus.documents[0].text, corpus.queries[0].gold
    ('Bread is baked.', ('d1',))
    """
    # The smallest file comes first: a mistake in it is found before millions of documents are read.
    relevant = read_qrels(qrels)
    asked = read_queries(queries, query_key=query_key, query_id_key=query_id_key, scores_key=scores_key)
    judged, notes = _judge_queries(asked.items, relevant, Path(qrels).name)
    texts = read_documents(documents, text_key=text_key, id_key=id_key)
    return JudgedCorpus(texts.items, judged, [*texts.problems, *asked.problems], notes, (texts, asked))


def read_qrels(path: Path | str) -> dict[str, Relevant]:
    """Read which documents are relevant to which queries.

    A line has three columns (query, document, score; BEIR) or four (query, subtopic, document, score; TREC). They are
    separated by tabs or spaces, in a ``.csv`` file by commas. In a ``.jsonl`` file a line is an object with
    ``query-id``, ``corpus-id`` and ``score`` (MTEB). Each file may be packed (``.gz``). A header line such as
    ``query-id corpus-id score`` is skipped. A document is relevant if its score is above 0; grades above 0 all mean the
    same. If the second of four columns is 0 or Q0 in every line, there are no subtopics. With subtopics a document is
    relevant if it covers any of them.

    Returns
    -------
    dict of Relevant
        An entry for each query id, also if no document is relevant to it.

    Raises
    ------
    InvalidInputError
        The file cannot be read or is empty; or a line has another number of columns, a score that is not a number, or
        contradicts an earlier line. The message names the line. No line is left out, since the figures would be wrong.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "diversity.qrels"
    >>> _ = path.write_text("1 1 a 1\\n1 2 a 1\\n1 2 b 1\\n1 2 c 0\\n")
    >>> read_qrels(path)["1"]
    Relevant(documents=('a', 'b'), subtopics={'1': ('a',), '2': ('a', 'b')})
    """
    path = Path(path)
    suffix = unpacked(path).suffix.lower()
    split = _split_object if suffix in JSON_SUFFIXES else partial(_split, delimiter="," if suffix == ".csv" else "\t")
    judged: dict[tuple[str, str, str], bool] = {}
    columns = 0
    try:
        for file, line, _, cells, problem in parse_lines(path, split):
            if problem is None and not columns:
                columns = len(cells)
                if cells[-1].lower() in _HEADS:
                    continue
            problem = problem or _add(judged, cells, columns)
            if problem is not None:
                raise InvalidInputError(str(Problem(file, line, problem)))
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror or error}") from error
    if not judged:
        raise InvalidInputError(f"{path} holds no judgement")
    with_subtopics = not _NO_SUBTOPIC.issuperset(subtopic for _, subtopic, _ in judged)
    covered: dict[str, dict[str, list[str]]] = {}
    for (query, subtopic, document), relevant in judged.items():
        of_query = covered.setdefault(query, {})
        if relevant:
            of_query.setdefault(subtopic, []).append(document)
    return {
        query: Relevant(
            tuple(dict.fromkeys(document for documents in by_subtopic.values() for document in documents)),
            {subtopic: tuple(documents) for subtopic, documents in by_subtopic.items()} if with_subtopics else {},
        )
        for query, by_subtopic in covered.items()
    }


def _split_object(line: str) -> list[str]:
    """The query, the document and the score of a JSON object."""
    record = parse_object(line)
    query, document, score = (value_of(record, keys) for keys in _KEYS)
    return [as_name(query, "the query"), as_name(document, "the document"), str(score)]


def _split(line: str, delimiter: str) -> list[str]:
    """The three or four columns of a line."""
    line = line.strip()
    try:
        # BEIR writes its files with the csv module: an id that holds a quotation mark is in quotation marks.
        cells = next(csv.reader([line], delimiter=delimiter))
    except csv.Error as error:
        raise InvalidInputError(f"not a table: {error}") from None
    # TREC files separate their columns by any white space.
    cells = [cell.strip() for cell in cells] if len(cells) in (3, 4) else line.split()
    if len(cells) not in (3, 4):
        raise InvalidInputError(
            f"{len(cells)} columns, expected 3 (query, document, score) or 4 (query, subtopic, document, score)"
        )
    if not all(cells):
        raise InvalidInputError("a column is empty")
    return cells


def _add(judged: dict[tuple[str, str, str], bool], cells: list[str], columns: int) -> str | None:
    """Add the judgement of one line, or say what is wrong with the line."""
    if len(cells) != columns:
        return f"{len(cells)} columns, but the first line has {columns}"
    query, *subtopic, document, score = cells
    value = as_float(score)
    if not math.isfinite(value):
        return f"the score, in the last column, must be a number, got {quoted(score)}"
    key = query, subtopic[0] if subtopic else "0", document
    if judged.setdefault(key, value > 0) != (value > 0):
        return f"document {quoted(document)} is judged again for query {quoted(query)}, with another result"
    return None


def _judge_queries(
    queries: Sequence[Query], relevant: Mapping[str, Relevant], name: str
) -> tuple[list[Query], list[str]]:
    """The queries that have a relevant document, with their judgements; and notes on the others."""
    unknown = list(relevant.keys() - {query.id for query in queries})
    if len(unknown) == len(relevant):
        raise InvalidInputError(
            f"none of the query ids of {name} is the id of a query: it has {quoted(next(iter(relevant)))}, and the "
            f"first query has the id {quoted(queries[0].id)}"
        )
    judged = [
        replace(query, gold=relevant[query.id].documents, subtopics=relevant[query.id].subtopics)
        for query in queries
        if query.id in relevant and relevant[query.id].documents
    ]
    if not judged:
        raise InvalidInputError(f"{name} names no relevant document for any query: no score is above 0")
    notes = []
    if unknown:
        example = quoted(min(unknown))
        notes.append(f"No query has {len(unknown)} of the {len(relevant)} query ids of {name}, such as {example}.")
    if left := len(queries) - len(judged):
        notes.append(f"Left out: {left} of {len(queries)} queries, without a relevant document in {name}.")
    return judged, notes
