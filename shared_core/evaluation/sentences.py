"""The sentences of a recommendation, by case."""

from __future__ import annotations

from .hybrid_search import HYBRID_SEARCH

# How a query names its points.
SUBTOPICS_EXAMPLE = '{"subtopics": {"reset": ["a", "b"], "disk": ["c"]}}'

SENTENCES = {
    # No setting is named.
    "nothing known": "No winner can be named: no query says which picks are right. {missing}",
    "trade-off": "The trade-off: the picks of plain similarity have a mean cosine of {relevance} with the query and of "
    "{redundancy} with each other.",
    "least redundant": "Among the settings that keep at least {kept} of that relevance, the picks of {label} repeat "
    "each other least (mean cosines {relevance} and {redundancy}).",
    "all zero": "No setting can be named: {measure} is 0 for all. No setting picked what the queries ask for.",
    # Gold documents that nearly repeat each other.
    "points": "{repeats} Point recall counts near-repeats as one point. This comparison is for readers who need {ours}: "
    "{measure} decides. If you need {theirs}, {other} decides ({option}={key}): then {advice}.",
    "name points": f"To name the points yourself, write them into the query: {SUBTOPICS_EXAMPLE}.",
    # Similarity.
    "enough": "Similarity is enough{reserve}: its {measure} is {mean} over {over}, and no other setting is better by "
    "more than chance.",
    "others lower": "The best of the others, {label}, has {mean}.",
    "others too few": "The best of the others, {label}, has {mean}, which is {lead} more, but {queries} cannot show a "
    "difference: at least {fewest} are needed.",
    "others few": "The best of the others, {label}, has {mean}, which is {lead} more. That may be chance ({p}). "
    "{queries} show only large differences: compare with {enough} or more.",
    "others chance": "The best of the others, {label}, has {mean}, which is {lead} more. That may be chance ({p}). A "
    "comparison with more queries can decide.",
    # Another setting.
    "take": "Take {label}: its {measure} is {mean} over {over}.",
    "lead": "That is {lead} above plain similarity, which is more than chance ({p}).",
    "none worse": "It makes {better} of the {what} better than similarity, and none worse.",
    "worse": "{but} makes {worse} of the {what} worse than similarity, by {loss} on average, and {better} of the {what} "
    "better. {most}",
    "one loses most": "Query {query} loses most: {loss}.",
    "several lose most": "{count} {what} lose most, {loss} each, such as {query}.",
    "rival higher": "{label} has {mean}, which is {lead} more. That may be chance ({p}), and {setting} is simpler: it "
    "is earlier in the list of settings.",
    "rival chance": "The best of the other methods, {label}, has {mean}: the difference may be chance ({p}).",
    "rival lower": "The best of the other methods, {label}, has {mean}: the difference is more than chance ({p}).",
    # Fewer picks.
    "fewer": "{texts} of {label} {find} at least as much as {than} texts of similarity: {measure} {ours} against "
    "{theirs}, a difference of {difference}.",
    "maybe less": "So they may also find up to {less} less.",
    "next smaller": "The next smaller number that was tried, {k}, finds less.",
    "change the lines": "The lines of code select as many texts as the tables: for fewer, change the number to {k}.",
}
# What the two measures of gold documents ask for.
QUESTIONS = {"point_recall": "each point once", "recall": "every copy"}
# What a setting needs that no lines of code say, by its label.
NEEDS = {
    HYBRID_SEARCH: (
        "Hybrid search needs a second index, of the words. It fuses the ranking by words (BM25) with the ranking by "
        "vectors. Many stores offer it."
    ),
    "RRF over the queries": "It searches for each sub-question and fuses the rankings; nothing is selected.",
    "reranker": "That is your reranker alone, without a selection.",
}


def say(case: str, **facts: object) -> str:
    """The sentence of a case with these facts."""
    return SENTENCES[case].format(**facts)
