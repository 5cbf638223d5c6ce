"""The comparison as one HTML file that opens anywhere, offline, by double click."""

from __future__ import annotations

import base64
import hashlib
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

try:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup
except ImportError as error:  # pragma: no cover
    raise ImportError('the report needs jinja2: pip install "setselect[eval]"') from error

from ...errors import InvalidParameterError
from ..results import Comparison
from ._chart import chart
from ._queries import embedded
from ._table import WHISKER, by_method, table
from ._text import clip, clip_middle, counted, number, p_value

_ROOM = Path(__file__).parent
_PLACES = (("wide", 1040, 520), ("narrow", 340, 400))


def _hash(source: str) -> str:
    """What the page's Content-Security-Policy calls this very text, so that it may run and no other."""
    return "'sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode() + "'"


@lru_cache
def _fixed() -> dict[str, Any]:
    """Style and script, which no comparison changes, and the policy that lets in them alone."""
    style = (_ROOM / "report.css").read_text(encoding="utf-8")
    script = "".join((_ROOM / name).read_text(encoding="utf-8") for name in ("report.js", "report_queries.js"))
    policy = {
        "default-src": "'none'",
        "style-src": _hash(style),
        "script-src": _hash(script),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return {
        "style": Markup(style),
        "script": Markup(script),
        "policy": Markup("; ".join(f"{name} {value}" for name, value in policy.items())),
    }


@lru_cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_ROOM),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=number, p_value=p_value, clip=clip, clip_middle=clip_middle)
    environment.globals.update(counted=counted)
    return environment


def render(comparison: Comparison) -> str:
    """The report as the text of one HTML page; the same comparison gives the same page.

    Nothing in it is loaded from elsewhere: style, script and data are inside, and its Content-Security-Policy allows
    no other. All that comes out of the comparison is text, markup in it included. Table, picture and recommendation
    need no script; looking at single queries does.

    Parameters
    ----------
    comparison : Comparison

    Returns
    -------
    str
        Well under 1.5 MB: the texts of the candidates are cut the shorter the more there are.

    Examples
    --------
    >>> from shared_core.evaluation.results import CorpusFacts, Estimate, Measure, Recommendation, Setting
    >>> found = Comparison(
    ...     "Notes <2024>", CorpusFacts(2, 1, 1, "a model", k=1, fetch_k=2, seed=0, versions={"numpy": "2.4.6"}),
    ...     (Setting("similarity", "similarity", None, "TopK()"),),
    ...     (Measure("relevance", "relevance", "mean cosine with the query", True, "nothing"),),
    ...     {(0, "relevance"): Estimate(0.5, 0.5, 0.5, 1)},
    ...     Recommendation(None, None, None, "No winner can be named.", None, None),
    ...     relevance=(0.5,), redundancy=(None,), queries=(),
    ... )
    >>> "<h1" in render(found), "Notes &lt;2024&gt;" in render(found)
    (True, True)
    """
    page = _environment().get_template("report.html.jinja")
    html = page.render(
        comparison=comparison,
        charts=[drawn for place in _PLACES if (drawn := chart(comparison, *place)) is not None],
        table=table(comparison),
        methods=by_method(comparison),
        whisker=WHISKER,
        # embedded() leaves no "<" in the text, so that it cannot end its script element.
        data=Markup(embedded(comparison)) if comparison.queries else None,
        **_fixed(),
    )
    # Half a surrogate pair, which broken JSON brings along, has no place in UTF-8.
    return html.encode("utf-8", "replace").decode("utf-8")


def write_report(comparison: Comparison, path: str | os.PathLike[str]) -> None:
    """Write the report to ``path``, in place of what was there.

    Raises
    ------
    InvalidParameterError
        ``path`` is a folder, or lies in a folder that does not exist.

    See ``render`` for what is in it.
    """
    target = Path(path)
    if target.is_dir():
        raise InvalidParameterError(f"path: {target} is a folder; give the name of a file in it, such as report.html")
    if not target.parent.is_dir():
        raise InvalidParameterError(f"path: there is no folder {target.parent}; make it first, or choose another")
    target.write_bytes(render(comparison).encode("utf-8"))
