"""A corpus that every installation has: NumPy's docstrings, with questions and hand-made gold answers."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import warnings
from pathlib import Path

from .corpus import Document, Query

# The first sentences tell what a function is for. Longer texts embed more slowly and add little.
TEXT_LENGTH = 300
_BASES = ("polynomial", "chebyshev", "legendre", "laguerre", "hermite", "hermite_e")
MODULES = (
    *("numpy", "numpy.linalg", "numpy.fft", "numpy.random", "numpy.ma", "numpy.strings", "numpy.char", "numpy.rec"),
    *("numpy.lib.stride_tricks", "numpy.polynomial", *(f"numpy.polynomial.{basis}" for basis in _BASES)),
)


# A question, and for each part of it the functions that answer it; the first is the gold document.
_LINES = Path(__file__).with_name("demo_questions.jsonl").read_text(encoding="utf-8").splitlines()
QUESTIONS: tuple[tuple[str, dict[str, str]], ...] = tuple((q["text"], q["parts"]) for q in map(json.loads, _LINES))


def demo_corpus() -> tuple[list[Document], list[Query]]:
    """NumPy's docstrings, and questions whose ``gold`` names one function for each part of the question.

    The ``subtopics`` of a question are its parts, each with every function that answers it. Functions that the
    installed NumPy does not have are left out.

    >>> documents, queries = demo_corpus()
    >>> len(documents) > 500, queries[1].gold
    (True, ('numpy.fft.fft', 'numpy.pad'))
    """
    texts = docstrings()
    documents = [Document(name, text) for name, text in texts.items()]
    queries = []
    for number, (question, parts) in enumerate(QUESTIONS, 1):
        named = {part: [f"numpy.{name}" for name in names.split()] for part, names in parts.items()}
        known = {part: tuple(name for name in names if name in texts) for part, names in named.items()}
        covered = {part: names for part, names in known.items() if names}
        queries.append(Query(str(number), question, tuple(names[0] for names in covered.values()), covered))
    return documents, queries


def docstrings() -> dict[str, str]:
    """A text for each public function and class of NumPy: its name, and its docstring up to the parameters.

    >>> docstrings()["numpy.pad"]
    'numpy.pad: Pad an array.'
    """
    found: dict[str, str] = {}
    seen: set[int] = set()
    with warnings.catch_warnings():
        # Reading a deprecated name gives a warning. Its docstring is used too.
        warnings.simplefilter("ignore")
        for module in map(importlib.import_module, MODULES):
            for name in sorted(getattr(module, "__all__", dir(module))):
                thing = getattr(module, name, None)
                if name.startswith("_") or not callable(thing) or id(thing) in seen:
                    continue
                seen.add(id(thing))
                prose = _prose(inspect.getdoc(thing) or "")
                if prose:
                    found[f"{module.__name__}.{name}"] = f"{module.__name__}.{name}: {prose}"
    return found


def _prose(docstring: str) -> str:
    before_sections = re.split(r"\n\w[\w ]+\n-{3,}", docstring)[0]
    paragraphs = (" ".join(p.split()) for p in before_sections.split("\n\n"))
    return "\n".join(p for p in paragraphs if not re.fullmatch(r"[\w.]+\(.*\)( -> .*)?", p))[:TEXT_LENGTH].strip()
