"""The setting to take and how certain that is; or, if no query says what is right, the trade-off between settings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from .._argument_names import argument_name
from .._validation import quoted
from ..errors import InvalidParameterError
from ..selectors.registry import DEFAULT_SELECTOR
from .hybrid_search import HYBRID_SEARCH
from .judging import Matrix
from .measures import bootstrap_interval, paired_tests
from .results import Claim, Difference, Estimate, Fewer, Measure, Recommendation, Setting, percent
from .summary import MeasureValues

# The measures that can decide by default. Those that use the most specific knowledge of what is right come first.
DECIDING = ("subtopic_recall", "answers", "p_recall", "point_recall", "recall")
# The measures that decide only on request.
ON_REQUEST = ("alpha_ndcg", "ndcg", "success", "precision", "topic_precision")
# What the two measures of gold documents ask for.
_QUESTIONS = {"point_recall": "each point once", "recall": "every copy"}
# The measures of what is found. Only these can be compared between different numbers of picks.
COUNTED = (*DECIDING, "success")
CHANCE = 0.05
# Sums of the same numbers in another order differ by less than this.
ROUNDING = 1e-9
# How a query names its points.
SUBTOPICS_EXAMPLE = '{"subtopics": {"reset": ["a", "b"], "disk": ["c"]}}'
# With fewer queries no difference has p < 0.05: the smallest p value is 2 / 2^queries.
FEWEST = 6
# With fewer queries the recommendation asks for more.
ENOUGH = 50
# A recommendation begins with "But" if the setting makes at least this share of the queries worse.
MANY = 0.1
# What a setting needs that no lines of code say, by its label.
_NEEDS = {
    HYBRID_SEARCH: (
        "Hybrid search needs a second index, of the words. It fuses the ranking by words (BM25) with the ranking by "
        "vectors. Many stores offer it."
    ),
    "RRF over the queries": "It searches for each sub-question and fuses the rankings; nothing is selected.",
    "reranker": "That is your reranker alone, without a selection.",
}
# The share of similarity's relevance that a setting must keep to be the example of the trade-off.
KEPT = 0.95


def recommend(
    settings: Sequence[Setting],
    found: Sequence[MeasureValues],
    values: Mapping[tuple[int, str], Estimate],
    differences: Mapping[tuple[int, str], Difference],
    of_sizes: Mapping[int, Sequence[MeasureValues]] = MappingProxyType({}),
    *,
    decide_by: str | None = None,
    repeats: str | None = None,
    missing: str | None = None,
) -> Recommendation:
    """The simplest of the settings that are best beyond chance; plain similarity if none is better than it.

    1. Each setting is tested against plain similarity, query by query. The p values allow for the number of settings
       (:func:`~shared_core.evaluation.measures.paired_tests`): the best of many settings leads by chance more often
       than a single one. If no setting is better with p < 0.05, similarity is enough.
    2. Among the settings that are better than similarity, the one with the highest mean is the best. The others that
       are not worse than the best with p < 0.05, tested in the same way, tie with it.
    3. Of the tied settings the simplest is recommended. Simpler is what comes first in ``settings``. The values of a
       swept parameter are equally simple, and the highest mean decides between them.

    The measure ``decide_by`` decides, or by default the first of ``DECIDING`` that has at least half as many queries as
    any other of them. ``values`` and ``differences`` are those of :class:`Comparison`. ``of_sizes`` holds the measures
    for each number of picks. ``repeats`` tells how many gold documents nearly repeat another one, and ``missing`` what
    the files lack for a deciding measure.
    """
    by_key = {one.measure.key: one for one in found}
    check_deciding(decide_by, by_key)
    key = decide_by or _default_measure({key: by_key[key].values.shape[1] for key in DECIDING if key in by_key})
    if key is None:
        return Recommendation(None, None, None, (Claim(_trade_off(settings, by_key, missing)),), None, None)
    measure, of_queries, names = by_key[key]
    if not of_queries.any():
        nothing = f"No setting can be named: {measure.name} is 0 for all. No setting picked what the queries ask for."
        return Recommendation(None, None, None, (Claim(nothing),), None, None)
    setting, rival, p_similarity, p_rival = _decide(settings, of_queries)
    what = "root queries" if measure.needs == "perspectives" else "queries"
    over = f"{len(names)} {what if len(names) != 1 else what.replace('queries', 'query')}"
    mean = f"its {measure.name} is {_with_interval(values[setting, key])} over {over}"
    others = len(settings) - 1
    if setting == 0:
        behind = rival is not None and differences[rival, key].mean > 0
        enough = "Similarity is enough, as far as these queries can tell" if behind else "Similarity is enough"
        claims = [Claim(f"{enough}: {mean}, and no other setting is better by more than chance.", "values", 0)]
        if rival is not None:
            lead = differences[rival, key]
            said = _best_of_the_others(settings[rival].label, values[rival, key], lead, _tested(p_rival, others))
            claims.append(Claim(said, "differences", rival))
    else:
        lead = differences[setting, key]
        claims = [
            Claim(f"Take {settings[setting].label}: {mean}.", "values", setting),
            Claim(
                f"That is {_with_interval(lead)} above plain similarity, which is more than chance "
                f"({_tested(p_similarity, others)}).",
                "differences",
                setting,
            ),
            Claim(
                _worst_case(lead, of_queries[setting] - of_queries[0], what),
                "differences",
                setting,
                # For p-recall the name is that of a root.
                None if measure.needs == "perspectives" else lead.worst_query,
            ),
        ]
        needs = _NEEDS.get(settings[setting].label)
        if needs is not None:
            claims.append(Claim(needs, setting=setting))
        if rival is not None:
            means = values[setting, key], values[rival, key]
            said = _rival_sentence(settings, setting, rival, *means, p_rival, others)
            claims.append(Claim(said, "values", rival))
    if repeats is not None and key in _QUESTIONS:
        claims = [*_gold_or_points(settings, key, by_key, setting, repeats), *claims]
    counted = {k: one.values for k, of_size in of_sizes.items() for one in of_size if one.measure.key == key}
    fewer = _find_fewer(settings, setting, counted) if key in COUNTED and counted else None
    if fewer is not None:
        said = _fewer_sentence(settings, fewer, measure, counted)
        if fewer.setting == setting:
            said += f" The lines of code select as many texts as the tables: for fewer, change the number to {fewer.k}."
        claims.append(Claim(said, "sizes", fewer.setting))
    return Recommendation(
        setting,
        rival,
        key,
        tuple(claims),
        p_rival if rival is not None and len(names) > 1 else None,
        p_similarity if setting else None,
        fewer,
    )


def _find_fewer(settings: Sequence[Setting], recommended: int, found: Mapping[int, Matrix]) -> Fewer | None:
    """The fewest picks that find as much as plain similarity with the largest number of picks that was tried.

    They are those of the recommended setting, or of the default selector if similarity is recommended. If similarity
    finds as much with fewer picks than the largest number, the setting is compared with that number. Too few queries
    say nothing. ``found`` maps each number to the values of the deciding measure, (settings, N).
    """
    default = next((i for i, one in enumerate(settings) if one.label == DEFAULT_SELECTOR), None)
    setting = recommended or default
    if setting is None or found[min(found)].shape[1] < FEWEST:
        return None
    enough = found[max(found)][0].mean() - ROUNDING
    than = min(k for k, values in found.items() if values[0].mean() >= enough)
    k = min((k for k, values in found.items() if values[setting].mean() >= enough), default=than)
    if k >= than:
        return None
    gaps = found[k][setting] - found[than][0]
    return Fewer(setting, k, than, float(gaps.mean()), *bootstrap_interval(gaps))


def lines_to_paste(setting: Setting, k: int, fetch_k: int, *, drop_duplicates: bool = True) -> dict[str, str]:
    """Lines of code that use a setting, for each of ``LangChain``, ``LlamaIndex`` and ``Arrays``.

    They name what the reader has: ``store``, ``index``, ``query`` and ``vectors``; for a setting that reads words also
    ``question`` and ``texts``, for constraints ``sources`` and ``costs``, for a reranker ``scores``. With
    sub-questions, ``split`` maps a question to them, and ``queries`` and ``questions`` are the vectors and the texts of
    all. The metadata of the documents has what the comparison has read, under the same keys: ``source`` and ``cost``.
    There are no lines for a ranking, from which nothing is selected.

    >>> from shared_core.evaluation.settings import named
    >>> print(lines_to_paste(named("mmr", lambda_mult=0.8)[0], k=5, fetch_k=50)["Arrays"])
    from setselect import select
    <BLANKLINE>
    # vectors: those of the 50 nearest candidates
    selection = select(query, vectors, k=5, selector="mmr", lambda_mult=0.8)
    """
    # The settings of a log of shadow mode are in the reader's own code.
    if setting.method in ("rrf", "ranking", "reranker", "returned", "selected"):
        return {}
    name = "similarity" if setting.method == "highest cosine" else setting.method
    given = {"selector": f'"{name}"', **dict(setting.parameters)}
    by_scores = given.pop("relevance", None) == '"scores"'
    arrays = _lines_for_arrays(setting, given, k, fetch_k, by_scores=by_scores)
    if setting.method == "similarity" and not setting.parameters:
        # Plain search needs no setselect.
        return {
            "LangChain": f'retriever = store.as_retriever(search_kwargs={{"k": {k}}})',
            "LlamaIndex": f"retriever = index.as_retriever(similarity_top_k={k})",
            "Arrays": arrays,
        }
    if not drop_duplicates:
        given["drop_duplicates"] = "False"
    langchain: dict[str, str] = {}
    llamaindex: dict[str, str] = {}
    if "max_per_source" in given:
        langchain["source"] = '"source"'
        llamaindex["source"] = 'lambda node: node.metadata.get("source", node.ref_doc_id or node.node_id)'
    if "budget" in given:
        langchain["costs"] = 'lambda document: document.metadata.get("cost", len(document.page_content))'
        llamaindex["costs"] = 'lambda node: node.metadata.get("cost", len(node.get_content()))'
    if setting.sub_questions:
        langchain["queries"] = llamaindex["queries"] = "split"
    if by_scores:
        langchain, llamaindex = {"relevance": '"relevance_score"'} | langchain, {"relevance": '"score"'} | llamaindex
        return {
            "LangChain": (
                "from langchain_setselect import SetSelectCompressor\n\n"
                f'# after the reranker, which gives each of {fetch_k} documents a metadata["relevance_score"]\n'
                f"compressor = SetSelectCompressor(\n    vectorstore=store, k={k}{_arguments(given)},\n"
                f"{_argument_lines(langchain)})"
            ),
            "LlamaIndex": (
                "from llamaindex_setselect import SetSelectPostprocessor\n\n"
                f"# after the reranker, which gives each of {fetch_k} nodes its score\n"
                f"postprocessor = SetSelectPostprocessor(\n    index=index, top_n={k}{_arguments(given)},\n"
                f"{_argument_lines(llamaindex)})"
            ),
            "Arrays": arrays,
        }
    items = "".join(f', "{key}": {value}' for key, value in given.items())
    return {
        "LangChain": (
            "from langchain_setselect import SetSelectRetriever\n\n"
            "retriever = SetSelectRetriever(\n    vectorstore=store,\n"
            f'    search_kwargs={{"k": {k}, "fetch_k": {fetch_k}{items}}},\n{_argument_lines(langchain)})'
        ),
        "LlamaIndex": (
            "from llamaindex_setselect import SetSelectIndexRetriever\n\n"
            f"retriever = SetSelectIndexRetriever(\n    index, top_n={k}, fetch_k={fetch_k}{_arguments(given)},\n"
            f"{_argument_lines(llamaindex)})"
        ),
        "Arrays": arrays,
    }


def _lines_for_arrays(setting: Setting, given: dict[str, str], k: int, fetch_k: int, *, by_scores: bool) -> str:
    query, question, of_all = "query", "question", ""
    if setting.sub_questions:
        query, question, of_all = "queries", "questions", " of all queries"
    what = "vectors"
    arguments = dict(given)
    threshold = arguments.pop("score_threshold", None)
    if setting.reads_words:
        what += " and texts"
        arguments |= {"question": question, "texts": "texts"}
    if by_scores:
        arguments["relevance"] = "scores"
    if "max_per_source" in given:
        arguments["sources"] = "sources"
    if "budget" in given:
        arguments["costs"] = "costs"
    least = f", of at least {threshold} by {'score' if by_scores else 'cosine'}" if threshold else ""
    return (
        f"from setselect import select\n\n# {what}: those of the {fetch_k} nearest candidates{of_all}{least}\n"
        f"selection = select({query}, vectors, k={k}{_arguments(arguments)})"
    )


def _arguments(given: Mapping[str, str]) -> str:
    return "".join(f", {key}={value}" for key, value in given.items())


def _argument_lines(given: Mapping[str, str]) -> str:
    return "".join(f"    {key}={value},\n" for key, value in given.items())


def _decide(settings: Sequence[Setting], of_queries: Matrix) -> tuple[int, int | None, float, float]:
    """The setting to recommend by the rule of :func:`recommend`, another that the text compares it with, and the p
    values against similarity and against that one; ``of_queries`` has shape (settings, N).
    """
    # Means that differ only by rounding are equal.
    means = of_queries.mean(axis=1).round(12).tolist()
    simplicity = _simplicity(settings)

    def best_of(among: Iterable[int]) -> int | None:
        return min(among, key=lambda i: (-means[i], simplicity[i], i), default=None)

    to_similarity = _p_values(of_queries, 0)
    better = [i for i, p in enumerate(to_similarity) if means[i] > means[0] and p < CHANCE]
    best = best_of(better)
    if best is None:
        rival = best_of(range(1, len(settings)))
        return 0, rival, 1.0, 1.0 if rival is None else to_similarity[rival]
    to_best = _p_values(of_queries, best)
    setting = min((i for i in better if to_best[i] >= CHANCE), key=lambda i: (simplicity[i], -means[i], i))
    if setting != best:
        return setting, best, to_similarity[setting], to_best[setting]
    rival = best_of(i for i in range(1, len(settings)) if settings[i].method != settings[best].method)
    return best, rival, to_similarity[best], 1.0 if rival is None else to_best[rival]


def _simplicity(settings: Sequence[Setting]) -> list[int]:
    """The place of each setting in the order of simplicity; the settings of a sweep share the place of the first."""
    sweeps: dict[str, int] = {}
    return [i if one.curve is None else sweeps.setdefault(one.curve, i) for i, one in enumerate(settings)]


def _p_values(of_queries: Matrix, against: int) -> list[float]:
    """For each setting the p value of its difference to the setting ``against``; 1 for that setting itself."""
    if len(of_queries) == 1:
        return [1.0]
    p = paired_tests(np.delete(of_queries, against, axis=0), of_queries[against])
    found: list[float] = np.insert(p, against, 1.0).tolist()
    return found


def check_deciding(key: str | None, allowed: Collection[str] = (*DECIDING, *ON_REQUEST)) -> None:
    """Raise an error if ``key`` is not a deciding measure, or if the queries do not allow it."""
    deciding = [one for one in allowed if one in (*DECIDING, *ON_REQUEST)]
    if key is not None and key not in deciding:
        among = ", ".join(deciding) or "none: these queries allow no deciding measure"
        raise InvalidParameterError(f"{argument_name('decide_by')} must be one of {among}, got {quoted(key)}")


def _default_measure(queries: Mapping[str, int]) -> str | None:
    """The first measure with at least half as many queries as any other."""
    # p-recall counts root queries, which are fewer than their queries, so it is not compared.
    most = max((n for key, n in queries.items() if key != "p_recall"), default=0)
    return next((key for key, n in queries.items() if key == "p_recall" or 2 * n >= most), None)


def _gold_or_points(
    settings: Sequence[Setting], key: str, by_key: Mapping[str, MeasureValues], setting: int, repeats: str
) -> list[Claim]:
    """Claims on the two questions that gold documents ask if many of them nearly repeat each other."""
    other = "recall" if key == "point_recall" else "point_recall"
    ours, theirs = (by_key[name].measure.name for name in (key, other))
    there = _decide(settings, by_key[other].values)[0]
    advice = "similarity is enough" if there == 0 else f"take {settings[there].label}"
    if there == setting:
        advice = "the advice is the same"
    return [
        Claim(
            f"{repeats} Point recall counts near-repeats as one point. This comparison is for readers who need "
            f"{_QUESTIONS[key]}: {ours} decides. If you need {_QUESTIONS[other]}, {theirs} decides "
            f"({argument_name('decide_by')}={other}): then {advice}.",
            "values",
        ),
        Claim(f"To name the points yourself, write them into the query: {SUBTOPICS_EXAMPLE}."),
    ]


def _best_of_the_others(label: str, value: Estimate, lead: Difference, p: str) -> str:
    """``p`` is the p value of the lead, in words."""
    said = f"The best of the others, {label}, has {_number(value.mean)}"
    if lead.mean <= 0:
        return f"{said}."
    said += f", which is {_with_interval(lead)} more"
    if value.queries < FEWEST:
        few = "1 query is" if value.queries == 1 else f"{value.queries} queries are"
        return f"{said}, but {few} too few to show a difference: at least {FEWEST} are needed."
    said += f". That may be chance ({p})."
    if value.queries < ENOUGH:
        return f"{said} {value.queries} queries show only large differences: compare with {ENOUGH} or more."
    return f"{said} A comparison with more queries can decide."


def _fewer_sentence(settings: Sequence[Setting], fewer: Fewer, measure: Measure, found: Mapping[int, Matrix]) -> str:
    label = settings[fewer.setting].label
    find = f"1 text of {label} finds" if fewer.k == 1 else f"{fewer.k} texts of {label} find"
    ours, theirs = found[fewer.k][fewer.setting].mean(), found[fewer.than][0].mean()
    said = (
        f"{find} at least as much as {fewer.than} texts of similarity: "
        f"{measure.name.partition('@')[0]} {_number(ours)} against {_number(theirs)}, a difference of "
        f"{_number(fewer.difference)}"
    )
    if fewer.low < fewer.high:
        said += f" (95 % interval {_number(fewer.low)} to {_number(fewer.high)})"
    said += f". So they may also find up to {_number(-fewer.low)} less." if fewer.low < 0 else "."
    below = [k for k in found if k < fewer.k]
    if below:
        said += f" The next smaller number that was tried, {max(below)}, finds less."
    return said


def _worst_case(difference: Difference, gaps: Matrix, what: str) -> str:
    """What the setting makes worse, and what better.

    ``gaps`` (N,) are its values minus those of similarity, and ``what`` is "queries" or "root queries".
    """
    better = f"{percent(difference.better)} of the {what} better"
    if difference.worst_query is None:
        return f"It makes {better} than similarity, and none worse."
    but = "But it" if difference.worse >= MANY else "It"
    as_many = int((gaps <= -difference.worst_loss + ROUNDING).sum())
    query, loss = quoted(difference.worst_query), _number(difference.worst_loss)
    most = f"Query {query} loses most: {loss}."
    if as_many > 1:
        most = f"{as_many} {what} lose most, {loss} each, such as {query}."
    return (
        f"{but} makes {percent(difference.worse)} of the {what} worse than similarity, by {_number(difference.loss)} "
        f"on average, and {better}. {most}"
    )


def _rival_sentence(
    settings: Sequence[Setting], setting: int, rival: int, ours: Estimate, theirs: Estimate, p: float, others: int
) -> str:
    label, mean, tested = settings[rival].label, _number(theirs.mean), _tested(p, others)
    if theirs.mean > ours.mean:
        lead = _number(theirs.mean - ours.mean)
        return (
            f"{label} has {mean}, which is {lead} more. That may be chance ({tested}), and {settings[setting].label} "
            "is simpler: it is earlier in the list of settings."
        )
    verdict = "the difference is more than chance" if p < CHANCE else "the difference may be chance"
    return f"The best of the other methods, {label}, has {mean}: {verdict} ({tested})."


def _trade_off(settings: Sequence[Setting], by_key: dict[str, MeasureValues], missing: str | None) -> str:
    add = "Add gold ids, subtopics or answers to at least some of the queries."
    said = f"No winner can be named: no query says which picks are right. {missing or add}"
    if "redundancy" not in by_key:
        return said
    relevance = by_key["relevance"].values.mean(axis=1)
    redundancy = by_key["redundancy"].values.mean(axis=1)
    said += (
        f" The trade-off: the picks of plain similarity have a mean cosine of {_number(relevance[0])} with the query "
        f"and of {_number(redundancy[0])} with each other"
    )
    eligible = [i for i in range(len(settings)) if i == 0 or relevance[i] >= KEPT * relevance[0]]
    least = min(eligible, key=lambda i: (float(redundancy[i]), i))
    if relevance[0] <= 0 or least == 0:
        return f"{said}."
    return (
        f"{said}. Among the settings that keep at least {percent(KEPT)} of that relevance, the picks of "
        f"{settings[least].label} repeat each other least (mean cosines {_number(relevance[least])} and "
        f"{_number(redundancy[least])})."
    )


def _with_interval(of: Estimate | Difference) -> str:
    if of.low == of.high:
        return _number(of.mean)
    return f"{_number(of.mean)} (95 % interval {_number(of.low)} to {_number(of.high)})"


def _number(value: float) -> str:
    # Adding 0.0 turns -0.0 into 0.0.
    return f"{round(value, 3) + 0.0:.3f}"


def _tested(p: float, others: int) -> str:
    return p_value(p) if others == 1 else f"{p_value(p)}, corrected for {others} comparisons"


def p_value(p: float) -> str:
    """A p value as papers print it: ``p = 0.031`` or ``p < 0.001``."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
