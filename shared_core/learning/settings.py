"""The options of a fit, checked once and held in one object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._validation import check_fields, check_one_of
from ..errors import InvalidParameterError, argument_name


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    """The options of :func:`fit`, with its defaults.

    Parameters
    ----------
    objective : "listwise" or "likelihood"
        "listwise" gives, among the subsets of one query, those with higher feedback a larger determinant of
        L' = R L R, and trains the relevance R too. "likelihood" makes the best subsets probable (NDPP paper, 4.3).
    kernel : "linear" or "rows"
        A :class:`LinearKernel`, which also serves items that come later, or a :class:`LowRankKernel` with a row for
        each item. Both start at the embeddings.
    k, fetch_k : int >= 1
        For each held-out item, k examples are selected from the ``fetch_k`` nearest items that are not held out.
    subsets : int >= 1, optional
        The number of subsets of an item, if :func:`fit` makes the labels; see :func:`label`.
    rank : int >= 1, optional
        K, the number of columns of V; default, and the most of a linear kernel: d.
    skew_rank : int >= 0
        K', the number of columns of B; 0 gives a symmetric DPP.
    temperature : float > 0
        Temperature of the exponential relevance. The listwise objective starts there and trains it.
    learn_relevance : bool
        Listwise: train the map W_R of the relevance too; otherwise only the temperature is trained.
    sharpness : float > 0
        Listwise: temperature of the target distribution, in standard deviations of the scores.
    pull : float >= 0
        Listwise: weight of the squared distance of the trained matrices from their start.
    share : float in (0, 1]
        Likelihood: share of the labelled subsets to train on, those with the highest scores.
    alpha, beta : float >= 0
        Likelihood: weights of the penalties on V and on B.
    ridge : float >= 0
        Likelihood: number added to the diagonal of a subset's matrix.
    learning_rate : float > 0, optional
        Learning rate of Adam; default: 0.001 for listwise, 0.01 (the paper's) for the likelihood.
    batch_size : int >= 1, optional
        Listwise: queries in a step; default: 32. Likelihood: subsets in a step; default: a fortieth of all, at least
        64, because each step reads the whole pool.
    epochs : int >= 1
        Largest number of epochs.
    patience : int >= 1
        The fit ends after this many epochs without improvement on the held-out items: of their feedback (listwise), or
        of the likelihood of their subsets (likelihood, if they have labels).
    held_out : float in (0, 1)
        Share of the items that takes no part in training, neither as queries nor as examples.
    seed : int >= 0
        Seed for the split, the initial kernel and the batches. On a CPU, the same input and the same number of threads
        give the same kernel.
    device : str or torch.device
        The device that trains the kernel.

    Examples
    --------
    >>> FitSettings(k=2, epochs=5).fetch_k
    100
    """

    objective: str = "listwise"
    kernel: str = "linear"
    k: int = 4
    fetch_k: int = 100
    subsets: int | None = None
    rank: int | None = None
    skew_rank: int = 32
    temperature: float = 0.1
    learn_relevance: bool = True
    sharpness: float = 0.6
    pull: float = 1e-3
    share: float = 0.1
    alpha: float = 0.01
    beta: float = 0.01
    ridge: float = 1e-5
    learning_rate: float | None = None
    batch_size: int | None = None
    epochs: int = 30
    patience: int = 8
    held_out: float = 0.2
    seed: int = 0
    device: Any = "cpu"

    def __post_init__(self) -> None:
        check_fields(self)
        check_one_of(self.kernel, "kernel", ("linear", "rows"))
        if self.fetch_k < self.k:
            raise InvalidParameterError(
                f"{argument_name('fetch_k')} must be at least {argument_name('k')} = {self.k}, got {self.fetch_k}"
            )

    @property
    def listwise(self) -> bool:
        """Whether the objective is the listwise one."""
        return self.objective == "listwise"
