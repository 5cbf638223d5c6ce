"""The comparison as one HTML file that a browser opens offline."""

from __future__ import annotations

import base64
import hashlib
import os
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

try:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
    from markupsafe import Markup, escape
except ImportError as error:  # pragma: no cover
    raise ImportError('the report needs jinja2: pip install "setselect[eval]"') from error

from ..._files import write_atomically
from ..diagnosis import Diagnosis
from ..recommend import p_value
from ..results import Claim, Comparison, Measure, Needs, clip, counted, number, percent
from ..snippets import lines_to_paste
from ..tables import signed, tabulate_differences, tabulate_means, tabulate_replacements, tabulate_sizes
from ._methods import METHODS, by_method, clip_middle, method_of
from ._queries import changed_by, query_data
from ._sizes import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Sizes, show_sizes

_TEMPLATES = Path(__file__).parent / "templates"
_PLOT = {"width": WIDTH, "height": HEIGHT, "left": LEFT, "top": TOP, "right": RIGHT, "bottom": BOTTOM}
_TITLES: dict[Needs, str] = {
    "nothing": "From the vectors alone",
    "gold": "Against gold documents",
    "subtopics": "Against subtopics",
    "perspectives": "Against perspectives",
    "answers": "Against answers",
}


def render(comparison: Comparison | Diagnosis) -> str:
    """The report as the text of one HTML page; the same comparison gives the same page.

    The page loads nothing: style, script and data are inside, and its Content-Security-Policy forbids everything else.
    Everything that comes from the comparison is shown as text, markup included. The tables, the charts and
    the recommendation need no script; the view of single queries does.

    Parameters
    ----------
    comparison : Comparison or Diagnosis
        What :func:`~shared_core.evaluation.compare.compare` or
        :func:`~shared_core.evaluation.compare.diagnose_documents` returns.

    Returns
    -------
    str
        Less than 1.5 MB: the more candidates there are, the more their texts are cut.

    Examples
    --------
    >>> from shared_core.evaluation.compare import compare
    >>> found = compare(["A", "B"], ["?"], ([[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.0]]), k=1, title="Notes <2024>")
    >>> "Notes &lt;2024&gt;" in render(found)
    True
    """
    if isinstance(comparison, Diagnosis):
        return _template("diagnosis_page.html.jinja").render(diagnosis=comparison, **_fixed_parts())
    advice, facts = comparison.recommendation.setting, comparison.corpus
    sizes, deciding = show_sizes(comparison), comparison.deciding
    # The measure that decides, those with the same needs, the others.
    shown = sorted(
        comparison.measures, key=lambda one: (deciding is None or one.needs != deciding.needs, one != deciding)
    )
    sizes_table = None if sizes is None else tabulate_sizes(comparison, sizes.measure.key, sizes.rows, sizes.precision)
    return _template("report.html.jinja").render(
        comparison=comparison,
        replacements=tabulate_replacements(comparison) if deciding is None and comparison.replacements[1:] else None,
        claims=[(claim, _links(claim, comparison, sizes)) for claim in comparison.recommendation.claims],
        sizes=sizes,
        sizes_table=sizes_table,
        by_words=sum(setting.keyword_search for setting in comparison.settings),
        rankings=[setting.label for setting in comparison.settings if setting.method == "ranking"],
        given=_given(comparison),
        deciding=deciding,
        changed_by=changed_by(comparison),
        changed_setting=comparison.recommendation.best_other,
        worse=_worse(comparison),
        losing=[one for one in comparison.changes if one.setting < one.similarity],
        gaining=[one for one in comparison.changes if one.setting > one.similarity],
        measures=shown,
        means=tabulate_means(comparison, shown),
        spans=[(_TITLES[needs], len(list(run))) for needs, run in groupby(shown, lambda one: one.needs)],
        methods=by_method(comparison),
        compared=[(measure, tabulate_differences(comparison, measure)) for measure in _compared_measures(comparison)],
        code=None
        if advice is None
        else lines_to_paste(comparison.settings[advice], facts.k, facts.fetch_k, drop_duplicates=facts.drop_duplicates),
        shown_queries={query.id: place for place, query in enumerate(comparison.queries)},
        # query_data() leaves no "<" in the text, so the text cannot end its script element.
        data=Markup(query_data(comparison)),
        **_fixed_parts(),
    )


def write_report(comparison: Comparison | Diagnosis, path: str | os.PathLike[str]) -> None:
    """Write the report (see :func:`render`) to ``path``; an existing file is replaced in one step.

    Raises
    ------
    OSError
        The file cannot be written; an existing one is kept.
    """
    write_atomically(path, render(comparison))


def _compared_measures(comparison: Comparison) -> list[Measure]:
    """The measures by which settings are compared with similarity: the one that decides, the others, those by cosine.

    There are none if similarity is the only setting.
    """
    if len(comparison.settings) == 1:
        return []
    deciding = comparison.recommendation.measure
    return sorted(comparison.measures, key=lambda one: (one.key != deciding, one.needs == "nothing"))


def _given(comparison: Comparison) -> dict[str, int]:
    """What says which texts are right, and the number of queries that have it."""
    queries = {one.needs: comparison.values[0, one.key].queries for one in comparison.measures}
    names: dict[Needs, str] = {"gold": "Gold documents", "subtopics": "Subtopics", "answers": "Answers"}
    return {name: queries[needs] for needs, name in names.items() if needs in queries}


def _worse(comparison: Comparison) -> tuple[int, int] | None:
    """How many queries the setting of ``comparison.changes`` makes worse, and better; None if roots are counted."""
    advice = comparison.recommendation
    setting = advice.best_other
    if setting is None or advice.measure in (None, "p_recall"):
        return None
    to, queries = comparison.differences[setting, advice.measure], comparison.values[setting, advice.measure].queries
    return round(to.worse * queries), round(to.better * queries)


def _links(claim: Claim, comparison: Comparison, sizes: Sizes | None) -> list[tuple[str, str, int | None]]:
    """Links to the row that has the figures of a claim, or else to its table, and to the query that it names.

    Each has a text, an anchor, and the place of the query that it opens.
    """
    links: list[tuple[str, str, int | None]] = []
    row, deciding = claim.setting, comparison.recommendation.measure
    if claim.shown_in == "values":
        links.append(("all settings", "table-title" if row is None else f"values-{row}", None))
    elif claim.shown_in == "differences" and _compared_measures(comparison):
        # Similarity has no row there.
        links.append(("better and worse", f"differences-{row}" if row and deciding else "differences-title", None))
    elif claim.shown_in == "sizes" and sizes is not None:
        links.append(("how many texts", f"sizes-{row}" if row in sizes.rows else "sizes-title", None))
    places = [place for place, query in enumerate(comparison.queries) if query.id == claim.query]
    links += [("the picks", "queries-title", place) for place in places]
    return links


@lru_cache
def _template(name: str) -> Template:
    loader = FileSystemLoader(_TEMPLATES)
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    filters = (number, signed, percent, breakable, p_value, clip, clip_middle)
    environment.filters.update({function.__name__: function for function in filters})
    environment.globals.update(counted=counted, meanings=METHODS, method_of=method_of, plot=_PLOT)
    return environment.get_template(name)


@lru_cache
def _fixed_parts() -> dict[str, Any]:
    """Style, script, and the policy that allows these two texts and nothing else."""
    style = (_TEMPLATES / "report.css").read_text(encoding="utf-8")
    scripts = ("tooltips.js", "copy.js", "queries.js")
    script = "".join((_TEMPLATES / name).read_text(encoding="utf-8") for name in scripts)
    policy = (
        f"default-src 'none'; style-src {_policy_hash(style)}; script-src {_policy_hash(script)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return {"style": Markup(style), "script": Markup(script), "policy": Markup(policy)}


def breakable(label: str) -> Markup:
    """A label that a narrow column breaks after "=" rather than inside a name or a number."""
    return Markup("=<wbr>").join(escape(part) for part in label.split("="))


def _policy_hash(source: str) -> str:
    """The name of a text in a Content-Security-Policy."""
    return "'sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode() + "'"
