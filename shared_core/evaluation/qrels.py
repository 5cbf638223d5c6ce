"""Relevance judgements (qrels) in the shapes that benchmarks publish: BEIR folders, and TREC files with subtopics."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from .._argument_names import argument_name
from .._parsing import parse_object
from .._validation import as_float, quoted
from ..errors import InvalidInputError, InvalidParameterError
from .corpus import (
    JSON_SUFFIXES,
    Document,
    Query,
    as_name,
    parse_lines,
    read_documents,
    read_queries,
    unpacked,
    value_of,
)

# A first line whose last column has one of these names is a head.
_HEADS = ("score", "relevance", "rel", "grade", "judgement", "judgment", "label")
# The keys of a JSON line, as MTEB and ir_datasets write them.
_KEYS = (("query-id", "query_id", "qid"), ("corpus-id", "corpus_id", "doc_id", "docid"), _HEADS)


class JudgedCorpus(NamedTuple):
    """Documents, judged queries, notes on those left out, and the row of each query among the ``lines`` of its file."""

    documents: list[Document]
    queries: list[Query]
    notes: Sequence[str] = ()
    rows: list[int] | None = None
    lines: int | None = None


def beir_files(
    folder: Path | str, split: str | None = None, qrels: Path | str | None = None
) -> tuple[Path, Path, Path]:
    """The documents, queries and judgements of a BEIR folder: ``corpus.jsonl``, ``queries.jsonl``, ``qrels/*.tsv``.

    The judgements may also be ``.jsonl`` (MTEB) or ``.csv``, and each file may be packed (``.gz``). ``split`` names a
    file in ``qrels/`` without its suffix; by default "test", or the only one. ``qrels`` is a file in place of those.
    """
    found = []
    for name in ("corpus.jsonl", "queries.jsonl"):
        found += [path for path in (Path(folder, f"{name}.gz"), Path(folder, name)) if path.is_file()][:1]
        if not found or not found[-1].name.startswith(name):
            raise InvalidInputError(f"{folder} is not a BEIR folder: it holds no {name}")
    splits = {unpacked(path).stem: path for path in sorted(Path(folder, "qrels").glob("[!.]*.[jnct]*"))}
    name = split or ("test" if "test" in splits or len(splits) != 1 else next(iter(splits)))
    if qrels is None and name not in splits:
        raise InvalidParameterError(
            f"{argument_name('split')} = {quoted(name)}, but {folder}/qrels holds only {', '.join(splits) or 'nothing'}"
        )
    return found[0], found[1], splits[name] if qrels is None else Path(qrels)


def read_judged(
    documents: Path | str,
    queries: Path | str,
    qrels: Path | str,
    *,
    text_key: str | None = None,
    id_key: str | None = None,
    **keys: str | None,
) -> JudgedCorpus:
    """Documents, queries and the judgements of these queries, from files; :func:`beir_files` finds those of a folder.

    ``gold`` and ``subtopics`` of the queries come from the judgements alone. Queries without a relevant document are
    left out, and a note counts them. The keys are those of :func:`~shared_core.evaluation.corpus.read_documents` and
    :func:`~shared_core.evaluation.corpus.read_queries`.
    """
    # The smallest file comes first: a mistake in it is found before millions of documents are read.
    relevant, name = read_qrels(qrels), Path(qrels).name
    asked = read_queries(queries, **keys)
    unknown = relevant.keys() - {query.id for query in asked}
    if len(unknown) == len(relevant):
        raise InvalidInputError(
            f"none of the query ids of {name} is the id of a query: it has {quoted(next(iter(relevant)))}, and the "
            f"first query has the id {quoted(asked[0].id)}"
        )
    rows = [row for row, query in enumerate(asked) if relevant.get(query.id)]
    if not rows:
        raise InvalidInputError(f"{name} names no relevant document for any query: no score is above 0")
    judged = []
    for query in (asked[row] for row in rows):
        topics = {label: tuple(ids) for label, ids in relevant[query.id].items()}
        gold = tuple(dict.fromkeys(name for ids in topics.values() for name in ids))
        judged.append(replace(query, gold=gold, subtopics={} if "" in topics else topics))
    notes = []
    if unknown:
        example = quoted(min(unknown))
        notes.append(f"No query has {len(unknown)} of the {len(relevant)} query ids of {name}, such as {example}.")
    if left := len(asked) - len(judged):
        notes.append(f"Left out: {left} of {len(asked)} queries, without a relevant document in {name}.")
    return JudgedCorpus(read_documents(documents, text_key=text_key, id_key=id_key), judged, notes, rows, len(asked))


def read_qrels(path: Path | str) -> dict[str, dict[str, list[str]]]:
    """For each query its subtopics, each with the ids of the relevant documents; "" if the file has no subtopics.

    A line has three columns (query, document, score; BEIR) or four (query, subtopic, document, score; TREC), separated
    by tabs or spaces, in a ``.csv`` file by commas; in a ``.jsonl`` file it is an object (MTEB). A head is skipped. A
    document is relevant if its score is above 0. A second of four columns with nothing but 0 or Q0 has no subtopics.
    """
    path = Path(path)
    suffix = unpacked(path).suffix.lower()

    def split(line: str) -> list[str]:
        if suffix in JSON_SUFFIXES:
            query, document, score = (value_of(parse_object(line), keys) for keys in _KEYS)
            return [as_name(query, "the query"), as_name(document, "the document"), str(score)]
        # BEIR writes its files with the csv module: an id that holds a quotation mark is in quotation marks.
        cells = [cell.strip() for cell in next(csv.reader([line.strip()], delimiter="," if suffix == ".csv" else "\t"))]
        # TREC files separate their columns by any white space.
        return cells if len(cells) in (3, 4) else line.split()

    judged: dict[tuple[str, str, str], bool] = {}
    columns: list[int] = []

    def add(line: str) -> None:
        cells = split(line)
        columns.append(len(cells))
        if columns[-1] != columns[0] or columns[0] not in (3, 4) or not all(cells):
            raise InvalidInputError(
                f"{len(cells)} columns, expected 3 (query, document, score) or 4 (query, subtopic, document, score), "
                "the same number in each line, and none empty"
            )
        score = as_float(cells[-1])
        if len(columns) == 1 and cells[-1].lower() in _HEADS:
            return
        if not math.isfinite(score):
            raise InvalidInputError(f"the score, in the last column, must be a number, got {quoted(cells[-1])}")
        key = cells[0], cells[1] if len(cells) == 4 else "0", cells[-2]
        if judged.setdefault(key, score > 0) != (score > 0):
            raise InvalidInputError(f"document {quoted(key[2])} is judged again for query {quoted(key[0])}, otherwise")

    for _ in parse_lines(path, add):
        pass
    if not judged:
        raise InvalidInputError(f"{path} holds no judgement")
    with_subtopics = not {subtopic for _, subtopic, _ in judged} <= {"0", "Q0"}
    relevant: dict[str, dict[str, list[str]]] = {}
    for (query, subtopic, document), counts in judged.items():
        of_query = relevant.setdefault(query, {})
        if counts:
            of_query.setdefault(subtopic if with_subtopics else "", []).append(document)
    return relevant
