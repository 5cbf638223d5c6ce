"""What the kernels of an NDPP share: L = V Vᵀ + B C Bᵀ with a skew-symmetric C (NDPP paper, 4.3)."""

from __future__ import annotations

import os
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._files import write_atomically
from ..._parsing import SafetensorsFile
from ..._validation import ReadOnlyArrays, as_finite, as_float64, read_only
from ...candidates import TIE_EPS, Candidates
from ...errors import InvalidInputError, KernelError, quoted

Matrix = NDArray[np.float64]

# The file of a kernel is safetensors, never pickle, with these in its metadata.
FORMAT = "setselect-kernel"
FORMAT_VERSION = "1"
# The logarithms of relevance stay above this, so that sums of some of them are finite.
_LEAST_LOG = -1e300


@runtime_checkable
class Kernel(Protocol):
    """What :class:`NDPP` needs of a kernel (NDPP paper, 4.3).

    A kernel may also have a method ``log_relevance(candidates)``. It returns the logarithm of each candidate's
    relevance r, shape (n,), or None if the kernel has not learned a relevance.

    Examples
    --------
    >>> import numpy as np
    >>> from setselect import NDPP, Candidates
    >>> class FirstNumbers:
    ...     def factors(self, candidates):
    ...         V = candidates.vectors[:, :2].astype(np.float64)  # the first two numbers of each vector
    ...         return V, np.empty((len(V), 0)), np.empty((0, 0))
    >>> NDPP(FirstNumbers()).select(Candidates([1.0, 1.0, 1.0], np.eye(3)), 2).indices.tolist()
    [0, 1]
    """

    def factors(self, candidates: Candidates) -> tuple[Matrix, Matrix, Matrix]:
        """V (n, K), B (n, K') and C (K', K') of these candidates, float64; K' may be 0."""
        ...


class LearnedKernel(ReadOnlyArrays):
    """Base of :class:`LowRankKernel` and :class:`LinearKernel`: checked factors, learned relevance, the file."""

    W_R: ArrayLike | None
    temperature: float | None

    _kind: ClassVar[str]
    _names: ClassVar[tuple[str, str, str]]

    def log_relevance(self, candidates: Candidates) -> Matrix | None:
        """log r of each candidate, shape (n,), float64, at most 0; None if the kernel has no temperature.

        r_i = exp(cos(q W_R, e_i W_R) / (2·temperature)), divided by its maximum, where q is the first question.
        Without W_R the cosine is that of q and e_i. (The paper, 4.4.1, trains two encoders in place of the linear map.)
        """
        if self.temperature is None:
            return None
        if self.W_R is None:
            return log_exponential(candidates.cosines[0].astype(np.float64), self.temperature)
        return log_exponential(_mapped_cosines(candidates, np.asarray(self.W_R)), self.temperature)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a safetensors file (extra ``kernel``) in one step; ids must be strings or integers.

        >>> import tempfile
        >>> from setselect import LowRankKernel
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     LowRankKernel([[1.0], [2.0]]).save(f"{folder}/kernel.safetensors")
        ...     LowRankKernel.load(f"{folder}/kernel.safetensors")
        LowRankKernel(M=2, K=1, K'=0)
        """
        arrays = dict(zip(self._names, map(np.ascontiguousarray, self._arrays()), strict=True))
        if self.W_R is not None:
            arrays["W_R"] = np.ascontiguousarray(self.W_R)
        metadata = {"format": FORMAT, "version": FORMAT_VERSION, "kind": self._kind, **self._metadata()}
        write_atomically(path, _safetensors().numpy.save(arrays, metadata=metadata))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file written by :meth:`save`. A KernelError names what is wrong in it."""
        _safetensors()
        try:
            file = SafetensorsFile(path)
            _check_metadata(cls._kind, file.metadata)
            missing = {*cls._names} - file.names
            if missing:
                raise KernelError(f"the file has no array {', '.join(sorted(missing))}")
            arrays = {name: file.read(name) for name in {*cls._names, "W_R"} & file.names}
            return cls(**arrays, **cls._arguments(file.metadata))
        except (KernelError, InvalidInputError) as error:
            raise KernelError(f"{path}: {error}") from None

    def _metadata(self) -> dict[str, str]:
        """What the file holds besides the arrays."""
        # float(repr(x)) is exactly x.
        return {} if self.temperature is None else {"temperature": repr(self.temperature)}

    @classmethod
    def _arguments(cls, metadata: dict[str, str]) -> dict[str, Any]:
        """Arguments of the class, from the file's metadata."""
        text = metadata.get("temperature")
        try:
            return {"temperature": None if text is None else float(text)}
        except ValueError:
            raise KernelError(f"the temperature {quoted(text)} is not a number: the file is damaged") from None

    def _arrays(self) -> tuple[Matrix, Matrix, Matrix]:
        first, second, skew = (getattr(self, name) for name in self._names)
        return first, second, skew

    def _set_checked(self) -> None:
        """Check the factors and the relevance, and keep read-only copies."""
        v, b, c = (getattr(self, name) for name in self._names)
        first_name, second_name, _ = self._names
        if (b is None) != (c is None):
            raise KernelError(f"{second_name} and C belong together: give both or neither")
        first = _check_matrix(v, first_name, empty=False)
        # Without b and c the copies have no columns.
        second = np.zeros((len(first), 0)) if b is None else _check_matrix(b, second_name)
        skew = np.zeros((0, 0)) if c is None else _check_matrix(c, "C")
        if len(second) != len(first):
            raise KernelError(
                f"{first_name} {first.shape} and {second_name} {second.shape} must have the same number of rows"
            )
        if skew.shape != (second.shape[1],) * 2:
            raise KernelError(
                f"C has shape {skew.shape}, but {second_name} {second.shape} needs shape {(second.shape[1],) * 2}"
            )
        if skew.size:
            # Half of each number, because the sum of two large numbers may overflow.
            off = np.abs(skew / 2 + skew.T / 2).max()
            if off > 0.5e-6 * max(np.abs(skew).max(), 1e-300):
                raise KernelError(f"C must be skew-symmetric (C = -C.T), but C + C.T reaches {2 * float(off):.3g}")
        fields: dict[str, Any] = dict(zip(self._names, map(read_only, (first, second, skew)), strict=True))
        if self.temperature is not None:
            if not as_finite(self.temperature) > 0:
                raise KernelError(f"temperature must be a finite number above 0, got {quoted(self.temperature)}")
            fields["temperature"] = float(self.temperature)
        if self.W_R is not None:
            if self.temperature is None:
                raise KernelError(
                    "W_R needs a temperature: give both, or temperature alone for the cosine of the vectors"
                )
            fields["W_R"] = read_only(_check_matrix(self.W_R, "W_R", empty=False))
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        first, second, _ = self._arrays()
        rows = "M" if self._kind == "low-rank" else "d"
        relevance = "" if self.temperature is None else f", temperature={self.temperature:.4g}"
        return f"{type(self).__name__}({rows}={first.shape[0]}, K={first.shape[1]}, K'={second.shape[1]}{relevance})"


def _check_matrix(values: ArrayLike, name: str, *, empty: bool = True) -> Matrix:
    """A float64 copy of ``values``, which must be a finite matrix."""
    array = as_float64(values, name)
    if array.ndim != 2:
        raise KernelError(f"{name} must have two dimensions, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise KernelError(f"{name} holds NaN or inf, first in row {np.flatnonzero(~np.isfinite(array).all(axis=1))[0]}")
    if not empty and 0 in array.shape:
        raise KernelError(f"{name} must have at least one row and one column, got shape {array.shape}")
    return array


def _mapped_cosines(candidates: Candidates, W_R: Matrix) -> Matrix:
    """cos(q W_R, e_i W_R), shape (n,), float64."""
    length = candidates.query.shape[0]
    if length != len(W_R):
        raise KernelError(
            f"the kernel's W_R takes vectors of length {len(W_R)}, the candidates have {length}; it was most likely "
            "learned on another embedding model"
        )
    # Cosines do not depend on the scale of W_R, and squares of very large or small entries would overflow or underflow.
    scale = np.abs(W_R).max() or 1.0
    columns = np.ascontiguousarray(W_R.T / scale)
    # A product below this length is the rounding error of unit vectors that map to zero.
    negligible = TIE_EPS * float(np.finfo(candidates.dtype).eps) * float(np.linalg.norm(columns))
    query = _unit(np.vecdot(columns, candidates.query.astype(np.float64)), negligible)
    # Computing each row alone, as above, would take five times as long as the rest of a selection. So each distinct row
    # goes through the matrix product once, and its copies get the same result.
    rows = candidates.vectors
    places: dict[bytes, int] = {}
    index = [places.setdefault(row.tobytes(), len(places)) for row in rows]
    if len(places) < len(rows):
        rows = rows[np.unique(index, return_index=True)[1]]
    mapped = rows.astype(np.float64, copy=False).dot(columns.T)
    cosines: Matrix = np.vecdot(_unit(mapped, negligible), query)
    return cosines[index]


def _unit(rows: Matrix, negligible: float) -> Matrix:
    lengths = np.sqrt(np.vecdot(rows, rows))[..., None]
    unit: Matrix = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > negligible)
    return unit


def log_exponential(cosines: Matrix, temperature: float) -> Matrix:
    """log of exp(cos / (2·temperature)) divided by its maximum, shape (..., n)."""
    # Half of each, because the difference of the largest numbers would overflow.
    below = cosines / 2 - cosines.max(axis=-1, keepdims=True) / 2
    # A higher temperature keeps the order of numbers whose logarithms would be too low.
    logs: Matrix = below / np.maximum(temperature, below.min(axis=-1, keepdims=True) / _LEAST_LOG)
    return logs


def _safetensors() -> Any:
    try:
        import safetensors.numpy
    except ImportError as error:
        raise ImportError('saving and loading kernels needs safetensors: pip install "setselect[kernel]"') from error
    return safetensors


def _check_metadata(kind: str, metadata: dict[str, str]) -> None:
    if metadata.get("format") != FORMAT:
        raise KernelError("a safetensors file, but not a setselect kernel")
    if (version := metadata.get("version", "")) != FORMAT_VERSION:
        raise KernelError(f"this setselect reads format version {FORMAT_VERSION}, not {quoted(version)}: upgrade it")
    if (other := metadata.get("kind")) != kind:
        raise KernelError(f"holds a {quoted(other)} kernel, not a {kind!r} one: load it with its own class")
