"""The outcome of a fit: the kernel, its feedback on held-out items, and the figures of each epoch, also as a plot."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .._files import write_atomically
from .._libraries import import_library
from ..selectors.kernels import LinearKernel, LowRankKernel
from ..selectors.ndpp import NDPP

_LINE_STYLES = ("--", ":", "-.", (0, (1, 4)), (0, (6, 3)), (0, (6, 2, 1, 2)))


@dataclass(frozen=True, slots=True)
class Epoch:
    """One pass over the labels.

    Attributes
    ----------
    number : int
        0 is the kernel at its start.
    loss : float or None
        Mean loss of the batches; None for number 0.
    likelihood : float or None
        Mean log-likelihood of the held-out subsets; only with ``objective="likelihood"``.
    feedback : float
        Mean feedback for the greedy picks of the held-out items.

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
    """A learned kernel and its feedback on held-out items.

    Attributes
    ----------
    kernel : LinearKernel or LowRankKernel
        The kernel of the epoch with the highest feedback on the held-out items.
    epoch : int
        The number of this epoch; 0 is the kernel at its start.
    feedback : float
        Mean feedback for the kernel's picks on the held-out items. It is slightly too high, because the same items
        decided which epoch is kept.
    unlearned : mapping of str to float
        The same mean for selectors that learn nothing, by their repr: Coverage, which also reads the words of the
        questions; NDPP without a kernel (its default, linear, and exponential at the temperature where the fit
        starts); VRSD; similarity.
    gain, standard_error : float
        Mean difference, query by query, between the kernel and the best of these selectors, and its standard error
        (NaN for a single query).
    history : tuple of Epoch
        Every epoch that was trained, from 0, the start.
    held_out : tuple of int
        Rows of the held-out queries. They took no part in training, neither as queries nor as examples.

    Examples
    --------
    >>> fitted = Fitted(LinearKernel([[1.0]]), 2, 0.9, {"NDPP()": 0.8}, 0.1, 0.02, (), (3,))
    >>> fitted.helped, fitted.selector.kernel
    (True, LinearKernel(d=1, K=1, K'=0))
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
        """Whether the gain on the held-out items exceeds one standard error.

        The same items decided which epoch is kept, so with few of them this may be chance. To be sure, require two or
        three standard errors.
        """
        return self.gain > self.standard_error

    @property
    def selector(self) -> NDPP:
        """The selector that was measured: NDPP with the kernel and the relevance that was learned with it."""
        return NDPP(self.kernel)


def plot(path: Path | str, fitted: Fitted, title: str = "") -> None:
    """Draw the loss and the held-out feedback of each epoch, with a line for each selector that learns nothing.

    The file is an SVG image; equal fits give equal files.
    """
    # The figure is made without pyplot, which keeps every figure in memory and may need a display.
    matplotlib, figures = import_library("matplotlib", "train"), import_library("matplotlib.figure", "train")
    with matplotlib.rc_context({"svg.hashsalt": "setselect", "svg.fonttype": "none"}):
        figure = figures.Figure(figsize=(7, 5), layout="constrained")
        above, below = figure.subplots(2, sharex=True, height_ratios=(1, 1.4))
        losses = [(epoch.number, epoch.loss) for epoch in fitted.history if epoch.loss is not None]
        above.plot(*zip(*losses, strict=True) if losses else ([], []), marker=".", color="#33628f")
        above.set_ylabel("loss")
        above.set_title(title)
        numbers, values = zip(*[(epoch.number, epoch.feedback) for epoch in fitted.history], strict=True)
        below.plot(numbers, values, marker=".", color="#33628f", label="learned")
        below.plot([fitted.epoch], [fitted.feedback], marker="o", color="#33628f", label=f"kept: epoch {fitted.epoch}")
        for (name, value), style in zip(fitted.unlearned.items(), _LINE_STYLES, strict=False):
            below.axhline(value, linestyle=style, color="#777777", label=name)
        below.set_ylabel(f"feedback, {len(fitted.held_out)} held-out items")
        below.set_xlabel("epoch")
        below.xaxis.get_major_locator().set_params(integer=True)
        below.legend(fontsize=8)
        drawing = io.BytesIO()
        figure.savefig(drawing, format="svg", metadata={"Date": None})
    write_atomically(path, drawing.getvalue())
