"""Select the best set of k documents from any vector store: the public names of setselect.

>>> import setselect
>>> setselect.select([1.0, 1.0], [[1.0, 0.0], [1.0, 0.02], [0.0, 1.0]], k=2).indices.tolist()
[1, 2]

The names here need only numpy. :mod:`setselect.evaluation`, :mod:`setselect.learning` and :mod:`setselect.tables` have
those that take longer to import, or an extra.
"""

from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

try:
    from shared_core import *  # noqa: F403
    from shared_core import SetSelectError as _ours  # noqa: F401
except ImportError as _error:
    _found = find_spec("shared_core")
    _place = Path(_found.origin) if _found is not None and _found.origin is not None else None
    if _place is None or _place.resolve().parent == Path(__file__).resolve().parents[1] / "shared_core":
        raise
    raise ImportError(
        f"setselect needs its own package shared_core, but Python finds another one first: {_place}. Rename the other "
        "one, or remove its folder from sys.path. Python searches the folder of the script (or the current folder) "
        "first, then PYTHONPATH."
    ) from _error

from shared_core import __all__ as _names
from shared_core.signals.embedding_models import CachedEmbedding as CachedEmbedding
from shared_core.signals.embedding_models import load_model as load_model

__all__ = [*_names, "CachedEmbedding", "__version__", "load_model"]
__version__ = version("setselect")
