"""Optional libraries, imported when they are needed."""

from __future__ import annotations

import importlib
from typing import Any


def import_library(name: str, extra: str) -> Any:
    """The module ``name``, imported now; the ImportError names the extra of setselect that installs it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f'this needs {name}: pip install "setselect[{extra}]"') from error
