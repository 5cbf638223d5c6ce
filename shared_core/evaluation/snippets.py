"""The lines of code that use a setting: with LangChain, with LlamaIndex, and with arrays."""

from __future__ import annotations

from collections.abc import Mapping

from ..selection.sizes import DEFAULT_EXTRA_K
from .results import Setting
from .settings import OF_ADAPTERS

# By how the setting gets its candidates: plain search needs no setselect, and scores come from a reranker.
_LINES = {
    "plain": {
        "LangChain": 'retriever = store.as_retriever(search_kwargs={{"k": {k}}})',
        "LlamaIndex": "retriever = index.as_retriever(similarity_top_k={k})",
    },
    "search": {
        "LangChain": """from langchain_setselect import SetSelectRetriever{imports}

retriever = SetSelectRetriever(
    vectorstore=store,
    search_kwargs={{"k": {k}, "fetch_k": {fetch_k}{items}}},
{fields})""",
        "LlamaIndex": """from llamaindex_setselect import SetSelectIndexRetriever{imports}

retriever = SetSelectIndexRetriever(
    index, top_n={k}, fetch_k={fetch_k}{arguments},
{fields})""",
    },
    "scores": {
        "LangChain": """from langchain_setselect import SetSelectCompressor{imports}

# after the reranker, which gives each of {fetch_k} documents{by_words} a metadata["relevance_score"]
compressor = SetSelectCompressor(
    vectorstore=store, k={k}{arguments},
{fields})""",
        "LlamaIndex": """from llamaindex_setselect import SetSelectPostprocessor{imports}

# after the reranker, which gives each of {fetch_k} nodes{by_words} its score
postprocessor = SetSelectPostprocessor(
    index=index, top_n={k}{arguments},
{fields})""",
    },
}
# The fields of the classes that say where the framework has what a setting needs.
_FIELDS = {
    "LangChain": {
        "relevance": '"relevance_score"',
        "source": '"source"',
        "costs": 'lambda document: document.metadata.get("cost", len(document.page_content))',
        "queries": "split",
        "extra_retrievers": "[WordRetriever.from_documents(documents)]",
    },
    "LlamaIndex": {
        "relevance": '"score"',
        "source": 'lambda node: node.metadata.get("source") or node.ref_doc_id or node.node_id',
        "costs": 'lambda node: node.metadata.get("cost", len(node.get_content()))',
        "queries": "split",
        "extra_retrievers": "[WordRetriever.from_nodes(nodes)]",
    },
}


def lines_to_paste(setting: Setting, k: int, fetch_k: int, *, drop_duplicates: bool = True) -> dict[str, str]:
    """Lines of code that use a setting, for each of ``LangChain``, ``LlamaIndex`` and ``Arrays``.

    They name what the reader has: ``store``, ``index``, ``query`` and ``vectors``; for a setting that reads words also
    ``question`` and ``texts``, for constraints ``sources`` and ``costs``, for a reranker ``scores``. With
    sub-questions, ``split`` maps a question to them, and ``queries`` and ``questions`` are the vectors and the texts of
    all. With ``keyword_search``, ``documents`` or ``nodes`` are those of the store, of which an index is made. The
    metadata of the documents has what the comparison has read, under the same keys: ``source`` and ``cost``. There are
    no lines for a ranking, from which nothing is selected.

    >>> from shared_core.evaluation.settings import named
    >>> print(lines_to_paste(named("mmr", lambda_mult=0.8)[0], k=5, fetch_k=50)["Arrays"])
    from setselect import MMR, select
    <BLANKLINE>
    # vectors: those of the 50 nearest candidates
    selection = select(query, vectors, k=5, selector=MMR(lambda_mult=0.8))
    """
    if setting.method in ("rrf", "ranking", "reranker"):
        return {}
    name = "similarity" if setting.method == "highest cosine" else setting.method
    arguments = dict(setting.parameters)
    own = [f"{key}={arguments.pop(key)}" for key in [*arguments] if key not in OF_ADAPTERS]
    kind = setting.selector.partition("(")[0]
    arguments = {"selector": f"{kind}({', '.join(own)})" if own else f'"{name}"', **arguments}
    by_scores = arguments.pop("relevance", None) == '"scores"'
    # The retrievers have another search for it.
    arguments.pop("keyword_search", None)
    needs = {
        "relevance": by_scores,
        "source": "max_per_source" in arguments,
        "costs": "budget" in arguments,
        "queries": setting.sub_questions,
        "extra_retrievers": setting.keyword_search and not by_scores,
    }
    by_words = f" and the {DEFAULT_EXTRA_K} best by words" if setting.keyword_search else ""
    arrays = _lines_for_arrays(setting, arguments, k, fetch_k, by_words, needs)
    imports = ", WordRetriever" if needs["extra_retrievers"] else ""
    imports += f"\nfrom setselect import {kind}" if own else ""
    if not drop_duplicates:
        arguments["drop_duplicates"] = "False"
    plain = setting.method == "similarity" and not setting.parameters
    kind = "plain" if plain else "scores" if by_scores else "search"
    lines = {
        framework: template.format(
            k=k,
            fetch_k=fetch_k,
            by_words=by_words,
            imports=imports,
            arguments=_as_arguments(arguments),
            items="".join(f', "{key}": {value}' for key, value in arguments.items()),
            fields="".join(f"    {key}={_FIELDS[framework][key]},\n" for key, needed in needs.items() if needed),
        )
        for framework, template in _LINES[kind].items()
    }
    return {**lines, "Arrays": arrays}


def _lines_for_arrays(
    setting: Setting, arguments: Mapping[str, str], k: int, fetch_k: int, by_words: str, needs: Mapping[str, bool]
) -> str:
    several = needs["queries"]
    of_select = {name: value for name, value in arguments.items() if name != "score_threshold"}
    if setting.reads_words:
        of_select |= {"question": "questions" if several else "question", "texts": "texts"}
    columns = {"relevance": "scores", "source": "sources", "costs": "costs"}
    of_select |= {"sources" if key == "source" else key: value for key, value in columns.items() if needs[key]}
    condition = " of all queries" if several else ""
    if "score_threshold" in arguments:
        condition += f", of at least {arguments['score_threshold']} by {'score' if needs['relevance'] else 'cosine'}"
    kind, is_object, _ = arguments["selector"].partition("(")
    return f"""from setselect import {kind + ", " if is_object else ""}select

# vectors{" and texts" if setting.reads_words else ""}: those of the {fetch_k} nearest candidates{by_words}{condition}
selection = select({"queries" if several else "query"}, vectors, k={k}{_as_arguments(of_select)})"""


def _as_arguments(values: Mapping[str, str]) -> str:
    return "".join(f", {name}={value}" for name, value in values.items())
