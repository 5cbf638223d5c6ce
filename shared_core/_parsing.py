"""What files hold, read without trust: JSON values, and the arrays of .npy and safetensors files.

Whatever the bytes are, a function of this module returns a value that the rest of the code can use, or raises an
InvalidInputError. The caller of :func:`parse_json` adds the file and the line to the message.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import InvalidInputError, quoted

# Half of a pair of UTF-16, which is a character only beside the other half.
_HALF = re.compile("[\ud800-\udfff]")
# The dtypes of safetensors that numpy has.
_DTYPES = {*(f"{kind}{bits}" for kind in "IU" for bits in (8, 16, 32, 64)), "F16", "F32", "F64", "BOOL"}


def decode_text(data: bytes) -> str:
    """The text of UTF-8 bytes, without a byte order mark."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInputError("not UTF-8") from None


def is_text(text: str) -> bool:
    """Whether UTF-8 can hold the text, as every file that is written needs it: not so with a lone surrogate."""
    return text.isascii() or not _HALF.search(text)


def parse_json(text: str | bytes) -> Any:
    """The JSON value of a line, a cell or a file.

    Strings with a lone surrogate, which no file can hold, are refused too.
    """
    text = decode_text(text) if isinstance(text, bytes) else text
    try:
        value = json.loads(text)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        # str(error) would name line 1, whatever the line of the file.
        raise InvalidInputError(f"not JSON: {error.msg} at column {error.colno}") from None
    except (RecursionError, ValueError):
        raise InvalidInputError(
            "not JSON that can be used: it is nested too deep, or holds a whole number of more than 4,300 digits or a "
            "lone surrogate, half of a character"
        ) from None
    return value


def parse_object(text: str | bytes) -> dict[str, Any]:
    """The JSON object of a line or a file."""
    value = parse_json(text)
    if not isinstance(value, dict):
        raise InvalidInputError(f"expected a JSON object, got {type(value).__name__}")
    return value


def open_npy(path: str | os.PathLike[str]) -> NDArray[Any]:
    """The array of a .npy file without pickled objects, mapped into memory."""
    try:
        array: NDArray[Any] = np.lib.format.open_memmap(path, mode="r")
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror or error}") from error
    # numpy reads the header with Python's tokenizer and parser. A damaged one raises TokenError, IndexError, TypeError,
    # OverflowError, MemoryError, RecursionError and others.
    except Exception as error:
        raise InvalidInputError(
            f"{path} is not a .npy file of numbers: {quoted(str(error) or type(error).__name__)}"
        ) from error
    return array


class SafetensorsFile:
    """A file of safetensors: its ``metadata``, the ``names`` of its arrays, and their numbers, one array at a time.

    The errors do not name the file. ImportError if safetensors is missing, FileNotFoundError if the file is.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        from safetensors import SafetensorError, safe_open

        # The stubs of safetensors do not type its methods.
        opened: Any = safe_open
        try:
            self._file = opened(os.fspath(path), framework="numpy")
        except SafetensorError as error:
            raise InvalidInputError(f"truncated, or not a safetensors file ({quoted(str(error))})") from None
        self.metadata: dict[str, str] = dict(self._file.metadata() or {})
        self.names = frozenset(self._file.keys())

    def read(self, name: str) -> NDArray[Any]:
        """The array of this name; a type that numpy lacks (BF16, float8) is refused."""
        dtype = self._file.get_slice(name).get_dtype()
        if dtype not in _DTYPES:
            raise InvalidInputError(
                f"the array {quoted(name)} has the type {dtype}, which numpy lacks: save it as F64, F32 or F16"
            )
        array: NDArray[Any] = self._file.get_tensor(name)
        return array
