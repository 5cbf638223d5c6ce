"""The command ``setselect compare``: documents and queries in, the best method for them out."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import typer
from numpy.typing import ArrayLike
from rich.console import Console
from rich.text import Text

from .._files import write_atomically
from .._validation import quoted
from ..errors import InvalidParameterError
from ..evaluation.compare import Embed, check_options, diagnose_documents, need_extra
from ..evaluation.compare import compare as compare_methods
from ..evaluation.corpus import Document, read_documents, read_queries, unpacked
from ..evaluation.demo import demo_corpus
from ..evaluation.diagnosis import Diagnosis
from ..evaluation.qrels import JudgedCorpus, beir_files, read_judged
from ..evaluation.results import Comparison, counted
from ..evaluation.settings import distinct, parse_setting, sweep
from ..evaluation.shadow_log import compare_log
from ..signals.embedding_models import DEFAULT_MODEL, CachedEmbedding, EmbeddingModel
from ._console_report import show_comparison, show_diagnosis
from ._terminal import FINE, WITH_PROBLEMS, message_console, result_console, show_progress, stop
from ._vectors import VectorOptions


def compare(
    context: typer.Context,
    folder: Annotated[
        Path | None,
        typer.Argument(help="BEIR folder: corpus.jsonl, queries.jsonl and qrels/*.tsv. Else: --documents, --queries."),
    ] = None,
    documents: Annotated[
        Path | None,
        typer.Option(
            help="JSON lines ({'text', optionally 'id', 'title', 'subtopics', 'source', 'cost'}), CSV, or a folder of "
            ".txt and .md files."
        ),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            help="Your questions: JSON lines or CSV ('text', optionally 'gold', 'subtopics', 'root', 'answers', "
            "'sub_questions', and 'scores': those of your own reranker), or .txt with one query a line. 'gold' lists "
            "the right documents, ['a', 'b', 'c']; 'subtopics' says which of them answer the same part, "
            "{'reset': ['a', 'b'], 'disk': ['c']}."
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            help="In place of documents, a vector store of LangChain or an index of LlamaIndex, as module:attribute: "
            "with my_app:store, what my_app.py in this folder assigns to store, or what its function store() returns. "
            "Nothing is written to it. Without --queries, the report says what the texts of the store hold."
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(help="Split of the BEIR folder: a file of its qrels/. Default: test, or the only one there is."),
    ] = None,
    qrels: Annotated[
        Path | None,
        typer.Option(
            help="Judgements in place of gold and subtopics: TREC (query, 0 or subtopic, document, score) or BEIR "
            "(query, document, score)."
        ),
    ] = None,
    text_key: Annotated[str | None, typer.Option(help="Key or column of a document's text. Default: text.")] = None,
    id_key: Annotated[str | None, typer.Option(help="Key or column of a document's id. Default: id or _id.")] = None,
    query_key: Annotated[
        str | None, typer.Option(help="Key or column of a query's text. Default: text, query or question.")
    ] = None,
    query_id_key: Annotated[str | None, typer.Option(help="Key or column of a query's id. Default: id or _id.")] = None,
    gold_key: Annotated[
        str | None, typer.Option(help="Key or column of the ids of the documents that answer a query. Default: gold.")
    ] = None,
    scores_key: Annotated[
        str | None,
        typer.Option(
            help="Key or column of the scores of your own reranker: an object from ids of documents to numbers. "
            "Default: scores."
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help=f"Name or folder of a sentence-transformers model. Default: {DEFAULT_MODEL}.")
    ] = None,
    embedding: Annotated[
        str | None,
        typer.Option(
            help="In place of --model, an embedding of LangChain as provider:model, such as "
            "openai:text-embedding-3-small."
        ),
    ] = None,
    vectors: Annotated[
        Path | None,
        typer.Option(
            help="Vectors of the documents: .npy with a row for each line that is not blank, or .parquet, or a folder "
            "of .parquet files, with ids."
        ),
    ] = None,
    query_vectors: Annotated[Path | None, typer.Option(help="Vectors of the queries, in such files.")] = None,
    id_column: Annotated[str, typer.Option(help="Column of the ids in .parquet files of vectors.")] = "id",
    vector_column: Annotated[str, typer.Option(help="Column of the vectors in .parquet files of vectors.")] = "vector",
    k: Annotated[
        str,
        typer.Option(
            "--k",
            metavar="INTEGER[,INTEGER...]",
            help="Number of documents to pick for each query, or several (5,2,3,8,10): the first one decides. With one "
            "number, 2, 3, 5, 8 and 10 are judged too.",
        ),
    ] = "5",
    fetch_k: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of nearest documents (candidates) to pick them from. Default: 5 k, at least 50."
        ),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            help='One more setting to compare, such as "mmr lambda_mult=0.7" or "coverage max_per_source=2 '
            'drop_near_duplicates=0.9". It may have budget, score_threshold, min_gain, min_k, keyword_search=True and '
            "relevance=scores too. May be repeated."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File for the report: .html, or .json for the figures only.")] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Compare on NumPy's docstrings; no files are needed.")] = False,
    log: Annotated[
        Path | None,
        typer.Option(
            help="In place of documents, the file of the logger setselect.shadow (shadow=True): how the selection "
            "would change the results of a running system."
        ),
    ] = None,
    decide_by: Annotated[
        str | None,
        typer.Option(
            help="Measure that decides: subtopic_recall, answers, p_recall, point_recall, recall, ndcg, success, "
            "alpha_ndcg, precision or topic_precision. Default: the most specific measure that enough of your queries "
            "support."
        ),
    ] = None,
    keep_duplicates: Annotated[
        bool,
        typer.Option(
            "--keep-duplicates",
            help="Count documents with the same text as several. By default a text counts once, as in the retrievers.",
        ),
    ] = False,
    cache: Annotated[
        Path | None, typer.Option(help="Folder for embeddings. Default: SETSELECT_CACHE, or ~/.cache/setselect.")
    ] = None,
) -> None:
    """Compare every method on your own documents and queries, on a vector store, or on a BEIR folder.

    Without queries, the result says what the documents hold: what repeats, and what leads to other texts. If queries
    have gold (ids of the right documents), subtopics or answers, it names the best setting, and tells which queries
    each setting makes worse.

    A running system with shadow=True writes a log. --log says how often and how much the selection would change what
    the system returned.

    Exit code 1 means that the run was interrupted and the report is partial, or that selections of a log failed.
    """
    say = message_console()
    given = {
        option.name or "": option.opts[0]
        for option in context.command.params
        if (origin := context.get_parameter_source(option.name or "")) is not None and origin.name == "COMMANDLINE"
    }

    def refuse_others(known: Collection[str], why: str) -> None:
        """Refuse an option that was given, but has no effect."""
        for name, option in given.items():
            if name not in known:
                raise InvalidParameterError(f"{why}: leave out {option}")

    try:
        sizes = _read_sizes(k)
        check_options(sizes, fetch_k, decide_by)
        packages = _check_out(out)
        if log is not None:
            refuse_others({"log"}, "the log has the picks and their cosines")
            summary = compare_log(log)
            result_console().print(Text(str(summary)))
            raise typer.Exit(WITH_PROBLEMS if summary.failures else FINE)
        asks = demo or any((folder, queries, qrels))
        if demo:
            refuse_others(_OF_QUESTIONS - _FILES | {"demo"}, "--demo has its own documents and queries")
        elif store is not None:
            why = "--store has its own documents and model" if queries else "without --queries nothing is compared"
            refuse_others({*_OF_ALL, "store", *(_OF_STORES if queries else ())}, why)
        elif documents is not None and not asks:
            refuse_others({*_OF_ALL, *_OF_DOCUMENTS}, "without --queries nothing is compared")
        source = VectorOptions(vectors, query_vectors, id_column, vector_column, model, embedding, asks)
        needs_model = store is None and source.embedding is None and source.embeds
        packages += ["sentence_transformers"] * needs_model
        need_extra(*packages, extra="compare" if needs_model else "eval")
        options: dict[str, Any] = {"k": sizes, "fetch_k": fetch_k, "decide_by": decide_by}
        options["settings"] = distinct([*sweep(), *map(parse_setting, setting or ())])
        options["drop_duplicates"] = not keep_duplicates
        of_documents: dict[str, Any] = {"text_key": text_key, "id_key": id_key}
        of_queries: dict[str, Any] = {"query_key": query_key, "query_id_key": query_id_key, "scores_key": scores_key}
        found: Comparison | Diagnosis
        if store is not None:
            # It needs pydantic, which the other runs do not.
            from ._store import load_store

            loaded, shown = load_store(store), {"title": store, "track": show_progress(say)}
            if queries is None:
                found = loaded.diagnose(loaded.opened, k=sizes[0], fetch_k=fetch_k, **shown)
            else:
                asked = read_queries(queries, gold_key=gold_key, **of_queries)
                found = loaded.compare(loaded.opened, asked, **options, **shown)
        elif documents is not None and not asks:
            texts = read_documents(documents, **of_documents)
            title = documents.absolute().name
            found = _diagnose(say, texts, source, cache, title=title, k=sizes[0], fetch_k=fetch_k)
        else:
            if demo:
                title, (texts, asked) = "NumPy's docstrings", demo_corpus()
                corpus = JudgedCorpus(texts, asked)
            elif folder is not None or qrels is not None:
                title, files = _find_files(folder, documents, queries, split, qrels, gold_key)
                corpus = read_judged(files[0], files[1], files[2], **of_documents, **of_queries)
            elif documents is None or queries is None:
                raise InvalidParameterError("--documents are needed, or --store, or a BEIR folder, or --demo")
            elif split:
                raise InvalidParameterError("--split is for a BEIR folder: name the file of the judgements by --qrels")
            else:
                title = documents.absolute().name
                texts = read_documents(documents, **of_documents)
                asked = read_queries(queries, gold_key=gold_key, **of_queries)
                corpus = JudgedCorpus(texts, asked)
            found = _compare(say, corpus, source, cache, title=title, **options)
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
            "interrupted before there was a result; finished embeddings are kept: run the same command again to resume",
        )
    raise typer.Exit(WITH_PROBLEMS if isinstance(found, Comparison) and found.partial else FINE)


# The options that every run has, those of a comparison, those that name its files, and those of a diagnosis.
_OF_ALL = {"k", "fetch_k", "out"}
_FILES = {
    "queries", "query_key", "query_id_key", "gold_key", "scores_key", "qrels", "split", "query_vectors",
}  # fmt: skip
_OF_STORES = {
    "queries", "query_key", "query_id_key", "gold_key", "scores_key", "setting", "decide_by", "keep_duplicates",
}  # fmt: skip
_OF_QUESTIONS = _OF_ALL | _FILES | {"model", "embedding", "setting", "decide_by", "keep_duplicates", "cache"}
_OF_DOCUMENTS = {
    "documents", "text_key", "id_key", "model", "embedding", "vectors", "id_column", "vector_column", "cache",
}  # fmt: skip


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


def _find_files(
    folder: Path | None,
    documents: Path | None,
    queries: Path | None,
    split: str | None,
    qrels: Path | None,
    gold_key: str | None,
) -> tuple[str, tuple[Path, Path, Path]]:
    """A title for the corpus, and its documents, queries and judgements."""
    if gold_key is not None:
        raise InvalidParameterError("the judgements (qrels) hold the gold ids: leave out --gold-key")
    if folder is not None:
        if documents or queries:
            raise InvalidParameterError(f"{folder} has its own documents and queries: leave out --documents, --queries")
        if split and qrels:
            raise InvalidParameterError("--split names judgements of the folder, --qrels a file of them: leave out one")
        files = beir_files(folder, split, qrels)
        return f"{folder.absolute().name}, {unpacked(files[2]).stem}", files
    if documents is None or queries is None or qrels is None:
        raise InvalidParameterError("--qrels judges documents and queries: add --documents and --queries")
    if split:
        raise InvalidParameterError("--split is for a BEIR folder: name the file of the judgements by --qrels")
    return documents.absolute().name, (documents, queries, qrels)


class _Model:
    """The model that the options name, whose embeddings are kept. It loads at the first embedding, after all checks."""

    def __init__(self, say: Console, source: VectorOptions, cache: Path | None) -> None:
        self.say, self.source, self.cache = say, source, cache
        self.progress = show_progress(say)

    @cached_property
    def loaded(self) -> EmbeddingModel:
        return self.source.load(self.say)

    def embed_documents(self, texts: list[str]) -> ArrayLike:
        return self._embed(self.loaded.embed_documents, "document", "Embedding documents", texts)

    def embed_queries(self, texts: list[str]) -> ArrayLike:
        return self._embed(self.loaded.embed_queries, "query", "Embedding queries", texts)

    def _embed(self, make: Embed, kind: str, description: str, texts: list[str]) -> ArrayLike:
        name = f"{self.loaded.fingerprint} {kind}"
        return CachedEmbedding(make, name, self.cache, track=self.progress, description=description)(texts)


def _diagnose(
    say: Console, texts: list[Document], source: VectorOptions, cache: Path | None, **options: Any
) -> Diagnosis:
    model = _Model(say, source, cache)
    rows = source.read(source.documents, [text.id for text in texts])
    return diagnose_documents(texts, model.embed_documents if rows is None else rows, track=model.progress, **options)


def _compare(
    say: Console, corpus: JudgedCorpus, source: VectorOptions, cache: Path | None, **options: Any
) -> Comparison:
    model = _Model(say, source, cache)
    if source.queries is not None and any(query.sub_questions for query in corpus.queries):
        raise InvalidParameterError(
            "--query-vectors holds no vectors of sub-questions: leave it out, so that they are embedded, or leave out "
            "'sub_questions'"
        )
    rows = source.read(source.documents, [text.id for text in corpus.documents])
    query_rows = source.read(source.queries, [query.id for query in corpus.queries], corpus.rows, corpus.lines)
    comparison = compare_methods(
        corpus.documents,
        corpus.queries,
        (model.embed_documents if rows is None else rows, model.embed_queries if query_rows is None else query_rows),
        model=source.name,
        track=model.progress,
        notes=corpus.notes,
        **options,
    )
    limit = model.loaded.max_characters if rows is None else None
    longer = sum(len(document.text) > limit for document in corpus.documents) if limit else 0
    if not longer:
        return comparison
    of_all = f"{longer} of {counted(len(corpus.documents), 'document')} {'is' if longer == 1 else 'are'}"
    note = f"{of_all} longer than about {limit} characters, of which the model reads only the beginning: split them."
    return replace(comparison, notes=(note, *comparison.notes))
