"""The command ``setselect compare``: documents and queries in, the best method for them out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from .._files import write_atomically
from ..errors import InvalidParameterError, quoted
from ..evaluation.compare import check_options, diagnose_documents, need_extra
from ..evaluation.compare import compare as compare_methods
from ..evaluation.corpus import JudgedCorpus, beir_files, read_documents, read_judged, read_queries
from ..evaluation.demo import demo_corpus
from ..evaluation.diagnosis import Diagnosis
from ..evaluation.results import Comparison, counted
from ..evaluation.settings import distinct, parse_setting, sweep
from ..signals.embedding_models import DEFAULT_MODEL
from ._console_report import show_comparison, show_diagnosis
from ._program import import_attribute, message_console, result_console, show_progress, stop
from ._vectors import VectorSource, read_rows


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
    vectors: Annotated[Path | None, typer.Option(help="Vectors of the documents: .npy, in their order.")] = None,
    query_vectors: Annotated[Path | None, typer.Option(help="Vectors of the queries: .npy, in their order.")] = None,
    k: Annotated[
        list[int] | None, typer.Option("--k", help="Documents to pick, default 5. Can be repeated: the first decides.")
    ] = None,
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
        sizes = k or [5]
        check_options(sizes, fetch_k, decide_by)
        asks = bool(demo or folder or queries or qrels)
        _refuse_unused(context, asks)
        needs_model = store is None and (vectors is None or (asks and query_vectors is None))
        packages = _check_out(out) + ["sentence_transformers"] * needs_model
        need_extra(*packages, extra="compare" if needs_model else "eval")
        source = VectorSource(say, vectors, query_vectors, model, cache)
        shown: dict[str, Any] = {"fetch_k": fetch_k, "track": show_progress(say)}
        settings = distinct([*sweep(), *map(parse_setting, setting or ())])
        options: dict[str, Any] = {"k": sizes, "decide_by": decide_by, "settings": settings}
        found: Comparison | Diagnosis
        if store is not None:
            (opened, compare_opened, diagnose_opened), shown["title"] = _load_store(store), store
            if queries is None:
                found = diagnose_opened(opened, k=sizes[0], **shown)
            else:
                found = compare_opened(opened, read_queries(queries), **options, **shown)
        elif documents is not None and not asks:
            texts = read_documents(documents)
            embed = source.read_documents(len(texts))
            found = diagnose_documents(texts, embed, k=sizes[0], title=documents.absolute().name, **shown)
        else:
            shown["title"], corpus = _read_corpus(demo, folder, documents, queries, qrels)
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
        stop(say, "interrupted; finished embeddings are kept: run the same command again to resume")


# The options that have no effect beside another one, and without queries.
_UNUSED = {
    "demo": ("folder", "documents", "queries", "store", "qrels", "vectors", "query_vectors"),
    "store": ("folder", "documents", "qrels", "vectors", "query_vectors", "model", "cache"),
    "folder": ("documents", "queries"),
}
_OF_QUERIES = ("query_vectors", "setting", "decide_by")


def _refuse_unused(context: typer.Context, asks: bool) -> None:
    """Refuse an option that was given, but has no effect."""
    options = {option.name or "": option.opts[0] for option in context.command.params}
    given = {name: options[name] for name in options if "COMMANDLINE" in str(context.get_parameter_source(name))}
    unused = [(name, f"with {given[other]}") for other in _UNUSED if other in given for name in _UNUSED[other]]
    for name, where in [*unused, *((name, "without --queries") for name in _OF_QUERIES if not asks)]:
        if name in given:
            raise InvalidParameterError(f"{given[name]} has no effect {where}: leave it out")


def _read_corpus(
    demo: bool, folder: Path | None, documents: Path | None, queries: Path | None, qrels: Path | None
) -> tuple[str, JudgedCorpus]:
    """The title and the corpus that the options name."""
    if demo:
        return "NumPy's docstrings", JudgedCorpus(*demo_corpus())
    if folder is not None:
        files = beir_files(folder, qrels)
        return f"{folder.absolute().name}, {files[2].stem}", read_judged(*files)
    if documents is None or queries is None:
        raise InvalidParameterError("--documents and --queries are needed, or --store, or a BEIR folder, or --demo")
    judged = None if qrels is None else read_judged(documents, queries, qrels)
    return documents.absolute().name, judged or JudgedCorpus(read_documents(documents), read_queries(queries))


_NEEDED = "a vector store of LangChain, a VectorStoreIndex of LlamaIndex, or a function that returns one"
# The adapter's functions for a store or an index, by the full name of its class; import-linter cannot see their names.
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
    package, *names = adapter
    compare, diagnose = (getattr(import_module(package), name) for name in names)
    return value, compare, diagnose


def _check_out(out: Path | None) -> list[str]:
    """The packages that the report needs. A path that cannot be right is refused before the comparison."""
    if out is None:
        return []
    if out.suffix.lower() not in (".html", ".json") or out.is_dir() or not out.absolute().parent.is_dir():
        raise InvalidParameterError(
            f"--out must be the name of a file that ends in .html or .json, in a folder that exists, got {out}"
        )
    return ["jinja2"] if out.suffix.lower() == ".html" else []


def _write(found: Comparison | Diagnosis, out: Path) -> None:
    if out.suffix.lower() == ".json":
        write_atomically(out, found.to_json(indent=1) + "\n")
    else:
        from ..evaluation.report import write_report

        write_report(found, out)


def _compare(corpus: JudgedCorpus, source: VectorSource, **options: Any) -> Comparison:
    source.check()
    embed_queries: Any = source.embed_queries
    if source.queries is not None:
        count = len(corpus.queries)
        embed_queries = read_rows(source.queries, corpus.rows or range(count), corpus.lines or count, "the queries")
    embed = source.read_documents(len(corpus.documents))
    comparison = compare_methods(corpus.documents, corpus.queries, (embed, embed_queries), model=source.name, **options)
    notes = [*corpus.notes, *comparison.notes]
    limit = source.loaded.max_characters if source.documents is None else None
    longer = sum(len(document.text) > limit for document in corpus.documents) if limit else 0
    if longer:
        of = f"{longer} of {counted(len(corpus.documents), 'document')}"
        notes.insert(0, f"The model reads only about {limit} characters of a text. Split those that are longer: {of}.")
    return replace(comparison, notes=tuple(notes))
