"""The comparison as one HTML file that a browser opens offline."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from dataclasses import asdict
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

try:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
    from markupsafe import Markup
except ImportError as error:  # pragma: no cover
    raise ImportError('the report needs jinja2: pip install "setselect[eval]"') from error

from .._files import write_atomically
from ..selection.route import DEFAULT_EXTRA_K
from .advice import p_value
from .diagnosis import Diagnosis
from .results import Comparison, Needs, Setting, clip, counted, number, percent
from .settings import HYBRID_SEARCH, SUM_OF_SCORES
from .tables import signed, tabulate_differences, tabulate_means, tabulate_replacements, tabulate_sizes

_TEMPLATES = Path(__file__).parent / "templates"
_TITLES: dict[Needs, str] = {
    "nothing": "From the vectors alone", "gold": "Against gold documents", "subtopics": "Against subtopics",
}  # fmt: skip
# For readers who have not met the methods.
METHODS = {
    "similarity": "The texts that are nearest to the query.",
    "coverage": "A set of texts that are relevant, cover the words of the query together, and do not repeat each "
    "other. A text that an earlier pick names, links to or cites, or that stands next to it, gets a bonus.",
    "ndpp": "A set of texts that are relevant and do not repeat each other.",
    "vrsd": "Texts whose sum points in the direction of the query.",
    "mmr": "Text by text: relevant, and not similar to those before it. A lower lambda_mult weighs repetition more.",
    HYBRID_SEARCH: "The candidates by their ranks in the search by words (BM25) and in the search by vectors, fused.",
    SUM_OF_SCORES: "The candidates by cosine + 0.7 BM25, each in standard deviations.",
}
_KEYWORD_SEARCH = f"The {DEFAULT_EXTRA_K} best texts of a search by words (BM25) over all documents are candidates too."
_BYTES = 1_150_000  # the limit for the data of single queries, so that the whole file stays below 1.5 MB
# Characters of a candidate's text; the first that fits is used.
_EXCERPTS = (1200, 600, 280, 140, 70, 40)
_ID, _QUERY = 120, 2000  # the most characters of an id or name, and of a query's text


def render(comparison: Comparison | Diagnosis) -> str:
    """The report as the text of one HTML page of less than 1.5 MB; the same comparison gives the same page.

    The page loads nothing: style, script and data are inside, and its Content-Security-Policy forbids everything else.
    Everything that comes from the comparison is shown as text, markup included. Only the view of single queries needs
    the script.

    >>> from shared_core.evaluation.compare import compare
    >>> found = compare(["A", "B"], ["?"], ([[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.0]]), k=1, title="Notes <2024>")
    >>> "Notes &lt;2024&gt;" in render(found)
    True
    """
    if isinstance(comparison, Diagnosis):
        return _template("diagnosis_page.html.jinja").render(diagnosis=comparison, **_fixed_parts())
    deciding = comparison.deciding
    # The measure that decides, those with the same needs, the others.
    shown = sorted(
        comparison.measures, key=lambda one: (deciding is None or one.needs != deciding.needs, one != deciding)
    )
    compared = sorted(comparison.measures, key=lambda one: (one != deciding, one.needs == "nothing"))
    given = {one.needs: comparison.values[0, one.key].queries for one in comparison.measures if one.needs != "nothing"}
    return _template("report.html.jinja").render(
        comparison=comparison,
        deciding=deciding,
        given=given,
        replacements=tabulate_replacements(comparison) if deciding is None and comparison.replacements[1:] else None,
        sizes=tabulate_sizes(comparison),
        losing=[one for one in comparison.changes if one.setting < one.similarity],
        gaining=[one for one in comparison.changes if one.setting > one.similarity],
        measures=shown,
        means=tabulate_means(comparison, shown),
        spans=[(_TITLES[needs], len(list(run))) for needs, run in groupby(shown, lambda one: one.needs)],
        compared=[(one, tabulate_differences(comparison, one)) for one in compared if len(comparison.settings) > 1],
        shown_queries={query.id: place for place, query in enumerate(comparison.queries)},
        # _query_data() leaves no "<" in the text, so the text cannot end its script element.
        data=Markup(_query_data(comparison)),
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


def _describe(setting: Setting) -> str:
    """What a row is, in words."""
    said = METHODS.get(setting.label if setting.method == "ranking" else setting.method, "")
    return f"{said} {_KEYWORD_SEARCH}" if setting.keyword_search else said


def _query_data(comparison: Comparison) -> str:
    """The views as JSON that is safe inside a script element; the texts of candidates are cut until the JSON fits."""
    for excerpt in _EXCERPTS:
        text = json.dumps(_data(comparison, excerpt), ensure_ascii=False, separators=(",", ":"))
        # Without "<" neither an end tag nor a comment can begin. "&" has no meaning inside a script element.
        text = text.replace("<", "\\u003c").replace(">", "\\u003e")
        if len(text.encode()) <= _BYTES:
            break
    return text


def _data(comparison: Comparison, excerpt: int) -> dict[str, Any]:
    changed = {one.query: one.setting < one.similarity for one in comparison.changes}
    queries = []
    for view in comparison.queries:
        candidates = [
            {**asdict(one), "id": _clip_middle(one.id, _ID), "text": clip(one.text, excerpt)} for one in view.candidates
        ]
        gold = [i for i, candidate in enumerate(view.candidates) if candidate.id in view.gold]
        more = {"candidates": candidates, "gold": gold, "goldTotal": len(view.gold), "loses": changed.get(view.id)}
        queries.append({**asdict(view), **more, "id": _clip_middle(view.id, _ID), "text": clip(view.text, _QUERY)})
    advice = comparison.recommendation
    wanted = [0, advice.setting, advice.runner_up, *range(len(comparison.settings))]
    return {
        "settings": [setting.label for setting in comparison.settings],
        "start": list(dict.fromkeys(position for position in wanted if position is not None))[:3],
        "queries": queries,
    }


def _clip_middle(text: str, limit: int) -> str:
    """``text`` in at most ``limit`` characters, with an ellipsis in place of the middle: long ids differ at the ends.

    >>> _clip_middle("corpus/2024/part-000017.json#41", 13)
    'corpus…son#41'
    """
    head = limit // 2
    return text if len(text) <= limit else f"{text[:head]}…{text[len(text) - (limit - head - 1) :]}"


@lru_cache
def _template(name: str) -> Template:
    loader = FileSystemLoader(_TEMPLATES)
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {one.__name__: one for one in (number, signed, percent, p_value, clip)}
    environment.filters["clip_middle"] = _clip_middle
    environment.globals.update(counted=counted, describe=_describe)
    return environment.get_template(name)


@lru_cache
def _fixed_parts() -> dict[str, Any]:
    """Style, script, and the policy that allows these two texts and nothing else."""
    style, script = ((_TEMPLATES / f"report.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    style_hash, script_hash = (
        "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'" for text in (style, script)
    )
    policy = (
        f"default-src 'none'; style-src {style_hash}; script-src {script_hash}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    return {"style": Markup(style), "script": Markup(script), "policy": Markup(policy)}
