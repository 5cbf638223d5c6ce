"""What came of learning a kernel: the kernel, how it did on held-out items, and each epoch on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..selectors.kernels.low_rank import LinearKernel, LowRankKernel
from ..selectors.ndpp import NDPP


@dataclass(frozen=True, slots=True)
class Epoch:
    """One pass over the labels.

    Attributes
    ----------
    number : int
        0 is the kernel as it began.
    loss : float or None
        Mean loss of its batches; None for number 0.
    likelihood : float or None
        Mean log-likelihood of held-out subsets; only under ``objective="likelihood"``.
    feedback : float
        Mean feedback of the greedy picks for held-out items.

    Examples
    --------
    >>> Epoch(1, 0.5, None, 0.9).feedback
    0.9
    """

    number: int
    loss: float | None
    likelihood: float | None
    feedback: float


@dataclass(frozen=True, eq=False)
class Fitted:
    """A learned kernel, and what it is worth.

    Attributes
    ----------
    kernel : LinearKernel or LowRankKernel
        Of the epoch whose greedy picks the feedback liked best on the held-out items.
    epoch : int
        Which that was; 0 is the kernel as it began.
    feedback : float
        Mean feedback of its picks for the held-out items. Since the epoch was chosen by it, it flatters a little.
    unlearned : mapping of str to float
        The same for selectors that learn nothing, by how they are written: NDPP without a kernel, VRSD, similarity.
    gain, standard_error : float
        Mean and standard error of the difference, query by query, to the best of these; the error is NaN for a
        single query.
    history : tuple of Epoch
    held_out : tuple of int
        Rows of the items that were not trained on.

    Examples
    --------
    >>> fitted = Fitted(LinearKernel([[1.0]]), 2, 0.9, {"NDPP()": 0.8}, 0.1, 0.02, (), (3,))
    >>> fitted.helped, fitted.selector
    (True, NDPP(kernel=LinearKernel(d=1, K=1, K'=0), relevance=None, temperature=None))
    """

    kernel: LinearKernel | LowRankKernel
    epoch: int
    feedback: float
    unlearned: Mapping[str, float]
    gain: float
    standard_error: float
    history: tuple[Epoch, ...]
    held_out: tuple[int, ...]

    @property
    def helped(self) -> bool:
        """Whether the held-out items got better examples than without learning, by more than one standard error.

        The epoch was chosen by the same items, so that pure noise, too, is above 0 in more than half of all fits.
        """
        return self.gain > self.standard_error

    @property
    def selector(self) -> NDPP:
        """What was measured: NDPP with the kernel and the relevance that was learned with it."""
        return NDPP(self.kernel)
