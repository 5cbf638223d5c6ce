"""Select the best set of k documents from any vector store: the public names of setselect.

>>> import setselect
>>> setselect.select([1.0, 1.0], [[1.0, 0.0], [1.0, 0.02], [0.0, 1.0]], k=2).indices.tolist()
[1, 2]

``__all__`` has the names of the core, which needs only numpy. ``LAZY`` has the names that need an extra or more time to
import. They are imported at their first use:

>>> from setselect import named
>>> named("mmr", lambda_mult=0.7)[1]
MMR(lambda_mult=0.7, lambda_b=0.95)
"""

from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

try:
    from shared_core import SetSelectError as _ours  # noqa: F401
except ImportError as _error:
    _found = find_spec("shared_core")
    _place = Path(_found.origin) if _found is not None and _found.origin is not None else None
    if _place is None or _place.resolve().parent == Path(__file__).resolve().with_name("shared_core"):
        raise
    raise ImportError(
        f"setselect needs its own package shared_core, but Python finds another one first: {_place}. Rename the other "
        "one, or remove its folder from sys.path. Python searches the folder of the script (or the current folder) "
        "first, then PYTHONPATH."
    ) from _error

from shared_core import *  # noqa: F403
from shared_core import __all__ as _names

__all__ = [*_names, "__version__"]
__version__ = version("setselect")

# For each module the names that it gives. setselect-stubs tells type checkers the same.
_LAZY_OF = {
    "shared_core.batch.dataset": ("Summary", "read_vectors_by_id", "select_dataset", "select_table"),
    "shared_core.evaluation.advice": ("lines_to_paste",),
    "shared_core.evaluation.compare": ("compare", "diagnose_documents"),
    "shared_core.evaluation.corpus": ("beir_files", "read_documents", "read_judged", "read_queries"),
    "shared_core.evaluation.demo": ("demo_corpus",),
    "shared_core.evaluation.report": ("write_report",),
    "shared_core.evaluation.diagnosis": ("Diagnosis",),
    "shared_core.evaluation.results": ("Comparison",),
    "shared_core.evaluation.settings": ("named",),
    "shared_core.evaluation.shadow_log": ("compare_log",),
    "shared_core.learning": (
        *("CoverageFeedback", "Feedback", "FitSettings", "Fitted", "GreedyDraws", "LabelledSubset"),
        *("LanguageModelFeedback", "fit", "hold_out", "label", "structural_symbols"),
    ),
    "shared_core.signals.embedding_models": ("CachedEmbedding", "load_model"),
}
_MODULES = {"learning": "shared_core.learning", "measures": "shared_core.evaluation.measures"}
LAZY = tuple(sorted([*_MODULES, *(name for names in _LAZY_OF.values() for name in names)]))


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    for module, names in _LAZY_OF.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *LAZY])


if __name__ == "__main__":
    from shared_core.cli import main

    main()
