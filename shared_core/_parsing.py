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

# JSON of data sets is nested a few levels deep. Python's own limit depends on the depth of the call.
_DEEPEST = 100
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

    Python may read some values that nobody can use, and they are refused too: lists and objects that are nested more
    than 100 deep, whole numbers of more than 4,300 digits, and strings with a lone surrogate, which no file can hold.

    >>> parse_json('{"a": [1, 2]}')
    {'a': [1, 2]}
    """
    text = decode_text(text) if isinstance(text, bytes) else text
    try:
        value = json.loads(text)
        usable = text.count("[") + text.count("{") <= _DEEPEST or not _is_deep(value, _DEEPEST)
        if usable and "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        # str(error) would name line 1, whatever the line of the file.
        raise InvalidInputError(f"not JSON: {error.msg} at column {error.colno}") from None
    except (RecursionError, ValueError):
        usable = False
    if not usable:
        raise InvalidInputError(
            f"not JSON that can be used: it is nested more than {_DEEPEST} deep, or holds a whole number of more than "
            "4,300 digits or a lone surrogate, half of a character"
        )
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
        self._path = path
        try:
            self._file = opened(os.fspath(path), framework="numpy")
        except SafetensorError as error:
            raise InvalidInputError(f"truncated, or not a safetensors file ({quoted(str(error))})") from None
        self.metadata: dict[str, str] = dict(self._file.metadata() or {})
        self.names = frozenset(self._file.keys())

    def read(self, name: str) -> NDArray[Any]:
        """The array of this name. BF16 becomes float32, without loss; float8 and smaller types are refused."""
        view = self._file.get_slice(name)
        dtype = view.get_dtype()
        if dtype == "BF16":
            return self._read_bfloat16(name).reshape(view.get_shape())
        if dtype not in _DTYPES:
            raise InvalidInputError(
                f"the array {quoted(name)} has the type {dtype}, which numpy lacks: save it as F64, F32, F16 or BF16"
            )
        array: NDArray[Any] = self._file.get_tensor(name)
        return array

    def _read_bfloat16(self, name: str) -> NDArray[np.float32]:
        # bfloat16 is the upper half of a float32. safetensors has checked the header and the places of the arrays.
        with open(self._path, "rb") as file:
            size = int.from_bytes(file.read(8), "little")
            start, end = parse_object(file.read(size))[name]["data_offsets"]
            file.seek(8 + size + start)
            halves = np.frombuffer(file.read(end - start), "<u2")
        return (halves.astype(np.uint32) << 16).view(np.float32)


def _is_deep(value: Any, left: int) -> bool:
    """Whether lists and objects are nested more than ``left`` deep."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return inner is not None and (not left or any(_is_deep(one, left - 1) for one in inner))
