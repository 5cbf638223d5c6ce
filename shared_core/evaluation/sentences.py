"""The sentences of a recommendation, by case."""

from __future__ import annotations

from .search import HYBRID_SEARCH

# How a query names its points.
SUBTOPICS_EXAMPLE = '{"subtopics": {"reset": ["a", "b"], "disk": ["c"]}}'
MISSING = "Add gold ids, subtopics or answers to at least some of the queries."
# What the two measures of gold documents ask for.
QUESTIONS = {"point_recall": "each point once", "recall": "every copy"}
OTHER_QUESTION = {"point_recall": "recall", "recall": "point_recall"}
_WORSE = "makes {worse} of the {what} worse than similarity, by {loss} on average, and {better} of the {what} better. "
_WORST = "{worst_query} loses most: {worst_loss}."
_FEW = "Few of your questions need two texts or more ({needing}). "
SENTENCES = {
    "nothing known": "No winner can be named: no query says which picks are right. {missing}",
    "trade-off": "The picks of plain similarity have a mean cosine of {relevance} with the query and of {redundancy} "
    "with each other.",
    "would change": "{label}, the default, would change the texts of {changed} of the queries, and replace {replaced} "
    "of {k} texts on average.",
    "most changed": "Most would change for {queries}.",
    "all zero": "No setting can be named: {measure} is 0 for all. No setting picked what the queries ask for.",
    "points": "{repeats} Point recall counts near-repeats as one point. This comparison is for readers who need "
    "{ours}: {measure} decides. If you need {theirs}, {other} decides ({option}): then {advice}. To name the points "
    "yourself, write them into the query: " + SUBTOPICS_EXAMPLE.replace("{", "{{").replace("}", "}}") + ".",
    "enough": "Similarity is enough: its {measure} is {mean} over {over}, and no other setting is better by more than "
    "chance.",
    "take": "Take {label}: its {measure} is {mean} over {over}.",
    "lead": "That is {lead} above plain similarity, which is more than chance ({p}).",
    "none worse": "It makes {better} of the {what} better than similarity, and none worse.",
    "some worse": f"It {_WORSE}{_WORST}",
    "many worse": f"But it {_WORSE}{_WORST}",
    "rival lower": "The best of the {others}, {rival}, has {rival_mean} (the difference: {rival_p}).",
    "rival simpler": "{rival} has {rival_mean}, which is {gap} more. That may be chance ({rival_p}), and {label} is "
    "simpler: it is earlier in the list of settings.",
    "rival few": "The best of the others, {rival}, has {rival_mean}, which is {gap} more. That may be chance "
    "({rival_p}). {over} show only large differences, if any: compare with {least} or more.",
    "rival chance": "The best of the others, {rival}, has {rival_mean}, which is {gap} more. That may be chance "
    "({rival_p}). A comparison with more queries can decide.",
    "interval of one": "The interval is about {one} alone. The p value allows for the choice among {count} settings, "
    "and decides.",
    "interval": "Interval and p value are computed in different ways, which differ for few queries. The p value "
    "decides.",
    "fewer": "{texts} of {fewer_label} {find} at least as much as {than} texts of similarity: {ours} against {theirs}, "
    "a difference of {difference}.",
    "few need two": _FEW + "Where one text is enough, a set of texts adds little to it.",
    "few need two, similarity": _FEW + "Where one text is enough, a set of texts adds little to it: expect little.",
    "change the lines": "The lines of code select as many texts as the tables: for fewer, change the number to {k}.",
}
# What a setting needs besides the vectors, by its label.
NEEDS = {
    HYBRID_SEARCH: (
        "Hybrid search needs a second index, of the words. It fuses the ranking by words (BM25) with the ranking by "
        "vectors. Many stores offer it."
    ),
    "coverage keyword_search=True": (
        "It needs a second index, of the words. The lines of code make it from the texts of your documents."
    ),
    "RRF over the queries": "It searches for each sub-question and fuses the rankings; nothing is selected.",
    "reranker": "That is your reranker alone, without a selection.",
}
