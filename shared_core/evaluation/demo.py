"""A corpus that every installation has: NumPy's docstrings, and questions about them with answers chosen by hand."""

from __future__ import annotations

import importlib
import inspect
import re
import warnings

from .corpus import Document, Query

# Longer texts embed more slowly and say little more: the first sentences tell what a function is for.
TEXT_LENGTH = 300
MODULES = (
    *("numpy", "numpy.linalg", "numpy.fft", "numpy.random", "numpy.ma", "numpy.strings", "numpy.char", "numpy.rec"),
    *("numpy.lib.stride_tricks", "numpy.polynomial", "numpy.polynomial.polynomial", "numpy.polynomial.chebyshev"),
    *("numpy.polynomial.legendre", "numpy.polynomial.laguerre", "numpy.polynomial.hermite"),
    "numpy.polynomial.hermite_e",
)
# What is asked, and for each part of it the functions that do it; the first is the one to name.
QUESTIONS: tuple[tuple[str, dict[str, str]], ...] = (
    (
        "How do I read numbers from a text file and fit a polynomial to them?",
        {
            "read": "loadtxt genfromtxt fromregex",
            "fit": "polynomial.polynomial.polyfit polyfit ma.polyfit polynomial.Polynomial",
        },
    ),
    (
        "Compute the Fourier transform and pad the array with zeros",
        {"transform": "fft.fft fft.rfft fft.fftn fft.rfftn fft.fft2 fft.rfft2", "pad": "pad"},
    ),
    (
        "Draw normal random numbers and save them to a text file",
        {"draw": "random.normal random.standard_normal random.randn", "save": "savetxt"},
    ),
    (
        "Solve a system of linear equations, or find the least squares solution where there is none",
        {"solve": "linalg.solve", "least squares": "linalg.lstsq linalg.pinv"},
    ),
    ("Sort an array and remove duplicates", {"sort": "sort ma.sort", "remove": "unique unique_values ma.unique"}),
    (
        "Replace NaN by zero, and take a mean that ignores missing values",
        {"replace": "nan_to_num", "mean": "nanmean"},
    ),
    (
        "Eigenvalues and determinant of a matrix",
        {
            "eigenvalues": "linalg.eigvals linalg.eig linalg.eigh linalg.eigvalsh",
            "determinant": "linalg.det linalg.slogdet",
        },
    ),
    (
        "Make a string upper case and strip the spaces around it",
        {"upper case": "strings.upper", "strip": "strings.strip"},
    ),
    ("How many business days lie between two dates?", {"count": "busday_count"}),
    (
        "Shuffle an array in place, and choose a random sample from it",
        {"shuffle": "random.shuffle", "sample": "random.choice"},
    ),
    (
        "The histogram of a data set and its percentiles",
        {"histogram": "histogram", "percentiles": "percentile quantile nanpercentile nanquantile"},
    ),
    ("Interpolate between data points and integrate the curve", {"interpolate": "interp", "integrate": "trapezoid"}),
    (
        "Stack arrays vertically and split them again",
        {"stack": "vstack concat stack", "split": "vsplit split array_split"},
    ),
    ("Reverse an array and rotate it by 90 degrees", {"reverse": "flip flipud fliplr", "rotate": "rot90"}),
    ("Inverse of a matrix", {"inverse": "linalg.inv"}),
    ("Work with an array on disk without reading it into memory", {"map": "memmap"}),
    (
        "Correlation and covariance of two variables",
        {"correlation": "corrcoef ma.corrcoef", "covariance": "cov ma.cov"},
    ),
    (
        "The roots of a polynomial, and its value at a point",
        {
            "roots": "roots polynomial.polynomial.polyroots",
            "value": "polyval polynomial.polynomial.polyval",
        },
    ),
    (
        "Which elements are in another array too, and where must new ones go to keep it sorted?",
        {"in": "isin intersect1d ma.isin ma.intersect1d", "where": "searchsorted"},
    ),
    (
        "Slide a window over an array, and smooth it by convolution",
        {"window": "lib.stride_tricks.sliding_window_view", "convolution": "convolve ma.convolve"},
    ),
    (
        "Save several arrays in one compressed file and load them again",
        {"save": "savez_compressed", "load": "load"},
    ),
    ("Round to the nearest integer and limit the values to a range", {"round": "rint round around", "limit": "clip"}),
    (
        "Change the shape of an array and swap its axes",
        {"shape": "reshape ma.reshape", "swap": "swapaxes ma.swapaxes moveaxis"},
    ),
    (
        "Draw from a Poisson and from a binomial distribution with a fixed seed",
        {
            "Poisson": "random.poisson",
            "binomial": "random.binomial",
            "seed": "random.default_rng random.seed random.SeedSequence",
        },
    ),
)


def demo_corpus() -> tuple[list[Document], list[Query]]:
    """NumPy's docstrings, and questions whose ``gold`` names one function for each part of what is asked.

    The ``subtopics`` of a question are its parts, with every function that does the same. Functions that the installed
    NumPy does not have are left out.

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
    """A text for each public function and class of NumPy: its name, and the docstring up to the parameters.

    >>> docstrings()["numpy.pad"]
    'numpy.pad: Pad an array.'
    """
    found: dict[str, str] = {}
    seen: set[int] = set()
    with warnings.catch_warnings():
        # Some names are deprecated in some versions of NumPy; they have docstrings all the same.
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
