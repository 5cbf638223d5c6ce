"""How a fit went, drawn: loss and held-out feedback, epoch by epoch."""

from __future__ import annotations

from pathlib import Path

from ..signals.language_models import library
from .results import Fitted

SUFFIXES = (".svg", ".png")
_STYLES = ("--", ":", "-.", (0, (1, 4)))


def plot(path: Path | str, fitted: Fitted, title: str = "") -> None:
    """Draw the loss and the held-out feedback of each epoch, beside those of what learns nothing.

    Parameters
    ----------
    path : path
        Ends in .svg or .png. Equal fits give equal .svg files.
    fitted : Fitted
    title : str

    Raises
    ------
    ImportError
        matplotlib is missing (extra ``train``).
    OSError
        The file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from shared_core import LinearKernel
    >>> from shared_core.learning.results import Epoch
    >>> history = (Epoch(0, None, None, 0.7), Epoch(1, 0.5, None, 0.9))
    >>> fitted = Fitted(LinearKernel([[1.0]]), 1, 0.9, {"NDPP()": 0.8}, 0.1, 0.02, history, (3,))
    >>> path = Path(tempfile.mkdtemp()) / "plot.svg"
    >>> plot(path, fitted, "learned in a night")
    >>> "learned in a night" in path.read_text(encoding="utf-8")
    True
    """
    # Not pyplot, which keeps every figure and may look for a screen.
    matplotlib, figures = library("matplotlib", "train"), library("matplotlib.figure", "train")
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
        for (name, value), style in zip(fitted.unlearned.items(), _STYLES, strict=False):
            below.axhline(value, linestyle=style, color="#777777", label=name)
        below.set_ylabel(f"feedback, {len(fitted.held_out)} held-out items")
        below.set_xlabel("epoch")
        below.xaxis.get_major_locator().set_params(integer=True)
        below.legend(fontsize=8)
        svg = Path(path).suffix.lower() == ".svg"
        figure.savefig(path, format="svg" if svg else "png", metadata={"Date": None} if svg else None)
