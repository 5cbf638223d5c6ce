"""Select the best set of k documents from any vector store: the public names of ``shared_core``.

>>> import setselect
>>> setselect.select([1.0, 0.9], [[1.0, 0.0], [1.0, 0.02], [0.0, 1.0]], k=2).indices.tolist()
[1, 2]
"""

from importlib.metadata import version

from shared_core import *  # noqa: F403
from shared_core import __all__ as _names

__all__ = [*_names, "__version__"]
__version__ = version("setselect")

if __name__ == "__main__":
    from shared_core.cli import main

    main()
