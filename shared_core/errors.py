"""Every error and warning that setselect raises on purpose.

::

    SetSelectError
    ├── InvalidInputError        (ValueError)   vectors, query, quality, costs, ids
    ├── InvalidParameterError    (ValueError)   k, shown, λ, names of selectors and parameters
    │   └── NothingLeftError                    every candidate is shown or forbidden by a limit
    ├── BudgetError              (ValueError)   a budget without costs, or in which nothing fits
    ├── PerspectiveError         (ValueError)   a perspective that cannot be projected on
    ├── KernelError              (ValueError)   an NDPP kernel or its file is not what it should be
    └── VectorSourceError        (RuntimeError) an adapter cannot get at the vectors it needs

    SetSelectWarning             (UserWarning)
    └── EmbeddingFallbackWarning                texts are embedded again for want of stored vectors

The first five are also ``ValueError``, so code that catches that goes on working.
"""


class SetSelectError(Exception):
    """Base of all errors of setselect."""


class InvalidInputError(SetSelectError, ValueError):
    """An array has the wrong shape, type or length, or holds NaN or inf; the message names the place."""


class InvalidParameterError(SetSelectError, ValueError):
    """A parameter is out of its range or unknown; the message lists what is allowed."""


class NothingLeftError(InvalidParameterError):
    """Every candidate is already shown, or forbidden by ``max_per_source`` or ``drop_near_duplicates``."""


class BudgetError(SetSelectError, ValueError):
    """A budget was given without costs, or no candidate fits into it."""


class PerspectiveError(SetSelectError, ValueError):
    """A perspective is zero, of the wrong length, or parallel to the query."""


class KernelError(SetSelectError, ValueError):
    """An NDPP kernel has wrong shapes or values, does not know an id, or its file cannot be read."""


class VectorSourceError(SetSelectError, RuntimeError):
    """An adapter needs vectors and has no way to get them; the message says which argument to pass."""


class SetSelectWarning(UserWarning):
    """Base of all warnings of setselect."""


class EmbeddingFallbackWarning(SetSelectWarning):
    """The candidates' texts are embedded again, since no source of stored vectors is known for the store."""
