# The types of setselect.py. A single file cannot carry the marker py.typed, so type checkers would treat it as untyped.
# They read this stub package instead (PEP 561).
from shared_core import *  # noqa: F403

__version__: str
