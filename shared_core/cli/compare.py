"""The command ``setselect compare``: documents and queries in, the best method for them out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from .._files import write_atomically
from .._validation import quoted
from ..errors import InvalidParameterError
from ..evaluation.compare import check_options, diagnose_documents, need_extra
from ..evaluation.compare import compare as compare_methods
from ..evaluation.corpus import JudgedCorpus, beir_files, read_documents, read_judged, read_queries, unpacked
from ..evaluation.demo import demo_corpus
from ..evaluation.diagnosis import Diagnosis
from ..evaluation.results import Comparison, counted
from ..evaluation.settings import distinct, parse_setting, sweep
from ..signals.embedding_models import DEFAULT_MODEL
from ._console_report import show_comparison, show_diagnosis
from ._terminal import import_attribute, message_console, result_console, show_progress, stop
from ._vectors import VectorSource, read_vectors


def compare(
    context: typer.Context,
    folder: Annotated[
        Path | None,
        typer.Argument(help="BEIR folder: corpus.jsonl, queries.jsonl, qrels/test.tsv. Or --documents."),
    ] = None,
    documents: Annotated[
        Path | None,
        typer.Option(help="JSON lines or CSV with text, id, title, ..., or a folder of .txt and .md files."),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            help="JSON lines or CSV with text, and gold (['a', 'b', 'c']: the right documents), subtopics ({'reset': "
            "['a', 'b'], 'disk': ['c']}: which of them answer the same part). Or a .txt file with one "
            "question a line."
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            help="In place of documents, a vector store of LangChain or an index of LlamaIndex: my_app:store is what "
            "my_app.py in this folder assigns to store, or what its function store() returns. Nothing is written to it."
        ),
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option(help="Judgements of TREC or BEIR in place of gold and subtopics, or of the folder's.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help=f"Name or folder of a sentence-transformers model. Default: {DEFAULT_MODEL}.")
    ] = None,
    embedding: Annotated[
        str | None, typer.Option(help="In place of --model, an embedding of LangChain, as provider:model.")
    ] = None,
    vectors: Annotated[
        Path | None, typer.Option(help="Vectors of the documents: .npy in their order, or .parquet with id and vector.")
    ] = None,
    query_vectors: Annotated[Path | None, typer.Option(help="Vectors of the queries, in such files.")] = None,
    k: Annotated[
        str,
        typer.Option("--k", help="Documents to pick, or several numbers with commas: the first one decides."),
    ] = "5",
    fetch_k: Annotated[
        int | None, typer.Option(min=1, help="Nearest documents to pick them from. Default: 5 k, at least 50.")
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            help='One more row, such as "mmr lambda_mult=0.7" or "coverage max_per_source=2 drop_near_duplicates=0.9". '
            "It may have budget, score_threshold, min_gain, min_k and keyword_search=True too. Can be repeated."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File for the report: .html, or .json for the figures only.")] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Compare on NumPy's docstrings; no files are needed.")] = False,
    decide_by: Annotated[
        str | None,
        typer.Option(
            help="Measure that decides: subtopic_recall, point_recall, recall, ndcg, success, alpha_ndcg, "
            "precision or topic_precision. Default: the most specific one that enough of your queries support."
        ),
    ] = None,
    keep_duplicates: Annotated[
        bool, typer.Option("--keep-duplicates", help="Count documents with the same text as several, and not once.")
    ] = False,
    cache: Annotated[
        Path | None, typer.Option(help="Folder for embeddings. Default: SETSELECT_CACHE, or ~/.cache/setselect.")
    ] = None,
) -> None:
    """Compare every method on your own documents and queries, on a vector store, or on a BEIR folder.

    Without queries, the result says what the documents hold. If queries have gold (ids of the right documents)
    or subtopics, it names the best row, and tells which queries each row makes worse.

    """
    say = message_console()
    try:
        sizes = _read_sizes(k)
        check_options(sizes, fetch_k, decide_by)
        packages = _check_out(out)
        asks = bool(demo or folder or queries or qrels)
        _refuse_others(context, _way_of(context.params))
        source = VectorSource(say, vectors, query_vectors, model, embedding, cache, asks)
        needs_model = store is None and embedding is None and source.embeds
        packages += ["sentence_transformers"] * needs_model
        need_extra(*packages, extra="compare" if needs_model else "eval")
        shown: dict[str, Any] = {"fetch_k": fetch_k, "track": show_progress(say)}
        options: dict[str, Any] = {"k": sizes, "decide_by": decide_by, "drop_duplicates": not keep_duplicates}
        options["settings"] = distinct([*sweep(), *map(parse_setting, setting or ())])
        found: Comparison | Diagnosis
        if store is not None:
            (opened, compare_opened, diagnose_opened), shown["title"] = _load_store(store), store
            if queries is None:
                found = diagnose_opened(opened, k=sizes[0], **shown)
            else:
                found = compare_opened(opened, read_queries(queries), **options, **shown)
        elif documents is not None and not asks:
            texts = read_documents(documents)
            rows = None if vectors is None else read_vectors(vectors, [text.id for text in texts])
            embed = source.embed_documents if rows is None else rows
            found = diagnose_documents(texts, embed, k=sizes[0], title=documents.absolute().name, **shown)
        else:
            if demo:
                shown["title"], corpus = "NumPy's docstrings", JudgedCorpus(*demo_corpus())
            elif folder is not None:
                files = beir_files(folder, qrels)
                shown["title"], corpus = f"{folder.absolute().name}, {unpacked(files[2]).stem}", read_judged(*files)
            elif documents is None or queries is None:
                raise InvalidParameterError(
                    "--documents and --queries are needed, or --store, or a BEIR folder, or --demo"
                )
            else:
                shown["title"] = documents.absolute().name
                if qrels is None:
                    corpus = JudgedCorpus(read_documents(documents), read_queries(queries))
                else:
                    corpus = read_judged(documents, queries, qrels)
            found = _compare(corpus, source, **options, **shown)
        try:
            # The report is written first, so that no failure of the terminal can lose it.
            if out is not None:
                _write(found, out)
        finally:
            if isinstance(found, Comparison):
                show_comparison(result_console(), found)
            else:
                show_diagnosis(result_console(), found)
        if out is not None:
            result_console().print(Text(f"\nWritten: {out}"), soft_wrap=True)
    except KeyboardInterrupt:
        stop(
            say,
            "interrupted; finished embeddings are kept: run the same command again to resume",
        )


# The options that each way to run has, and why it has no others.
_OF_ALL, _OF_MODEL = ("k", "fetch_k", "out"), ("model", "embedding", "cache")
_OF_ROWS = ("setting", "decide_by", "keep_duplicates")
_WAYS: dict[str, tuple[Sequence[str], str]] = {
    "demo": (("demo", *_OF_ALL, *_OF_MODEL, *_OF_ROWS), "--demo has its own documents and queries"),
    "store": (("store", *_OF_ALL), "without --queries nothing is compared"),
    "store with queries": (("store", "queries", *_OF_ALL, *_OF_ROWS), "--store has its own documents and model"),
    "documents": (("documents", "vectors", *_OF_ALL, *_OF_MODEL), "without --queries nothing is compared"),
    "folder": (
        ("folder", "qrels", "vectors", "query_vectors", *_OF_ALL, *_OF_MODEL, *_OF_ROWS),
        "a BEIR folder has its own documents and queries",
    ),
}


def _way_of(given: dict[str, Any]) -> str:
    """The way to run that the options name; "" if documents and queries come from files."""
    for way in ("demo", "store"):
        if given[way]:
            return "store with queries" if way == "store" and given["queries"] else way
    asks = given["queries"] or given["qrels"]
    return "folder" if given["folder"] else "documents" if given["documents"] and not asks else ""


def _refuse_others(context: typer.Context, way: str) -> None:
    """Refuse an option that was given, but has no effect."""
    for option in context.command.params:
        origin, name = context.get_parameter_source(option.name or ""), option.name
        if way and name not in _WAYS[way][0] and origin is not None and origin.name == "COMMANDLINE":
            raise InvalidParameterError(f"{_WAYS[way][1]}: leave out {option.opts[0]}")


_NEEDED = "a vector store of LangChain, a VectorStoreIndex of LlamaIndex, or a function that returns one"
# The adapter's functions for a store or an index, by the full name of its class. As in _vectors.py, import-linter
# cannot see the adapters' names.
_ADAPTERS: dict[type | str, tuple[str, str, str]] = {
    "langchain_core.vectorstores.base.VectorStore": ("langchain_setselect", "compare_store", "diagnose_store"),
    "llama_index.core.indices.vector_store.base.VectorStoreIndex": (
        "llamaindex_setselect", "compare_index", "diagnose_index",
    ),
}  # fmt: skip


def _load_store(given: str) -> tuple[Any, Callable[..., Comparison], Callable[..., Diagnosis]]:
    """The store or index that ``module:attribute`` names or returns, with the functions of its adapter."""
    # It needs pydantic, which the other runs do not.
    from ..retrieval.inputs import find_registered

    value = import_attribute("--store", given, _NEEDED)
    adapter = find_registered(_ADAPTERS, type(value))
    # A function of the user's may raise anything.
    if adapter is None and callable(value):
        try:
            value = value()
        except Exception as error:
            raise InvalidParameterError(f"--store: {given}() failed: {type(error).__name__}: {error}") from error
        adapter = find_registered(_ADAPTERS, type(value))
    if adapter is None:
        raise InvalidParameterError(f"--store: {given} must be {_NEEDED}, got {quoted(value)}")
    package, compare, diagnose = adapter
    functions = import_module(package)
    return value, getattr(functions, compare), getattr(functions, diagnose)


def _read_sizes(k: str) -> list[int]:
    try:
        return [int(number) for number in k.split(",")]
    except ValueError:
        raise InvalidParameterError(
            f"--k must be a whole number, or several with commas between them, got {quoted(k)}"
        ) from None


def _check_out(out: Path | None) -> list[str]:
    """The packages that the report needs. A path that cannot be right is refused before the comparison."""
    if out is None:
        return []
    if out.suffix.lower() not in (".html", ".json") or out.is_dir():
        raise InvalidParameterError(f"--out must be the name of a file that ends in .html or .json, got {out}")
    if not out.absolute().parent.is_dir():
        raise InvalidParameterError(f"--out: there is no folder {out.absolute().parent}")
    return ["jinja2"] if out.suffix.lower() == ".html" else []


def _write(found: Comparison | Diagnosis, out: Path) -> None:
    try:
        if out.suffix.lower() == ".json":
            write_atomically(out, found.to_json(indent=1) + "\n")
        else:
            from ..evaluation.report import write_report

            write_report(found, out)
    except OSError as error:
        raise OSError(
            f"--out: {out} cannot be written, an earlier report is kept: {error.strerror or error}"
        ) from error


def _compare(corpus: JudgedCorpus, source: VectorSource, **options: Any) -> Comparison:
    embed: Any = source.embed_documents
    embed_queries: Any = source.embed_queries
    if source.documents is not None:
        embed = read_vectors(source.documents, [text.id for text in corpus.documents])
    if source.queries is not None:
        ids = [query.id for query in corpus.queries]
        embed_queries = read_vectors(source.queries, ids, corpus.rows, corpus.lines)
    comparison = compare_methods(corpus.documents, corpus.queries, (embed, embed_queries), model=source.name, **options)
    notes = [*corpus.notes, *comparison.notes]
    limit = source.loaded.max_characters if source.documents is None else None
    longer = sum(len(document.text) > limit for document in corpus.documents) if limit else 0
    if longer:
        of_all = f"{longer} of {counted(len(corpus.documents), 'document')} {'is' if longer == 1 else 'are'}"
        note = (
            f"{of_all} longer than about {limit} characters, of which the model reads only the beginning: split them."
        )
        notes.insert(0, note)
    return replace(comparison, notes=tuple(notes))
