"""Fitting a kernel to pseudo-labels (scored subsets), and measuring it on held-out items (NDPP paper, 4.3)."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._argument_names import argument_name, rename_arguments
from .._files import hold_lock
from .._libraries import import_library
from .._validation import as_names, as_numeric, quoted
from ..errors import InvalidInputError, InvalidParameterError, warn
from .feedback.coverage import Feedback
from .held_out import HeldOut, Split, check_split, split_queries
from .labels.label_file import describe_callable
from .labels.labelling import LabelledSubset, check_labels, digest_labels, label
from .neighbours import Neighbours
from .results import Epoch, Fitted
from .settings import FitSettings


def fit(
    items: Sequence[Mapping[str, Any]],
    vectors: ArrayLike,
    feedback: Feedback,
    labels: Iterable[LabelledSubset] | None = None,
    *,
    settings: FitSettings | None = None,
    split: Split | None = None,
    queries: Iterable[int] | None = None,
    resume: str | os.PathLike[str] | None = None,
    ids: Sequence[Hashable] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = False,
    on_epoch: Callable[[Epoch], object] | None = None,
    say: Callable[[str], object] | None = None,
    **options: Any,
) -> Fitted:
    """Learn a kernel for :class:`NDPP` from labelled subsets of examples, and measure it on held-out items.

    Held-out items take no part in training, neither as queries nor as examples, and nothing is fitted to them. After
    each epoch the kernel selects k of the other items as examples for each held-out item: a new query that meets known
    examples. The feedback for these examples decides which epoch is kept and whether learning helped. NDPP without a
    kernel, VRSD and similarity are measured in the same way. A warning is given if the kernel's gain over the best of
    them does not exceed one standard error.

    Parameters
    ----------
    items : sequence of n mappings
        The pool of queries and examples, for example of questions and answers.
    vectors : array-like, shape (n, d)
        The items' embeddings.
    feedback : Feedback
        How good a set of examples is for an item.
    labels : iterable of LabelledSubset, optional
        From :func:`label`. By default they are made here, from the ``fetch_k`` nearest items that are not held out,
        with ``draw="greedy"`` for the listwise objective and ``"random"`` for the likelihood.
    settings : FitSettings, optional
        The options of the fit; see :class:`FitSettings` for all of them and their defaults.
    split : Split, optional
        From :func:`hold_out`. By default it is made here; if ``labels`` are given, from the queries of these labels.
        For given labels, pass the split with which they were drawn. Otherwise the subsets that contain held-out items
        are lost, often half of them, and a warning says how many.
    queries, resume
        Used only if the labels are made here: the rows that can be queries (default: all), and the file that keeps the
        labels, see :func:`label`. Without ``resume``, a fit that is killed loses its labels.
    ids : sequence of n hashables, optional
        Names of the rows of a :class:`LowRankKernel`; default: 0..n-1.
    checkpoint : path, optional
        Replaced in one step after each epoch. A fit with the same input and settings resumes from it (``epochs``,
        ``patience`` and ``device`` may differ) and ends with the kernel of an uninterrupted run.
    progress : bool
        Show a bar (tqdm).
    on_epoch : callable, optional
        Called with each :class:`Epoch`, also with those from a checkpoint.
    say : callable, optional
        Called once, with the number of prompts that a ``remote`` feedback will get; default: written to standard error.
    **options
        Fields of :class:`FitSettings`, such as ``k=2``; they replace those of ``settings``.

    Returns
    -------
    Fitted

    Raises
    ------
    InvalidInputError
        Items, vectors, split or labels do not fit each other, the labels teach nothing, fewer than two items are
        labelled, the feedback returns something other than a finite number, or ``checkpoint`` is a file of another
        kind.
    InvalidParameterError
        A parameter is out of its range, ``checkpoint`` was started with other settings or is in use by another run,
        or the numbers overflowed.
    OSError
        ``checkpoint`` or ``resume`` cannot be written.

    Warns
    -----
    SetSelectWarning
        Learning did not help, or labels hold held-out items and are left out.

    Examples
    --------
    >>> import warnings
    >>> from shared_core.learning import CoverageFeedback, fit
    >>> items = [{"question": f"{a} of {b}", "answer": f"{a}({b}(x))"} for a in "pqrs" for b in "uvw"]
    >>> vectors = np.random.default_rng(5).standard_normal((12, 6))
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # twelve items are too few for learning to help, and a warning says so
    ...     fitted = fit(items, vectors, CoverageFeedback(), k=2, epochs=4)
    >>> len(fitted.history), fitted.kernel.W_V.shape
    (5, (6, 6))
    """
    settings = dataclasses.replace(settings or FitSettings(), **options)
    _check_device(settings.device)
    # These modules need torch, and labelling works without it.
    from .checkpoint import read_checkpoint
    from .objectives.task import make_task
    from .training import Run

    neighbours = Neighbours(items, vectors)
    rows = np.array(as_numeric(vectors, "vectors"))
    if settings.kernel == "linear" and (settings.rank or 1) > rows.shape[1]:
        raise InvalidParameterError(
            f"rank must be at most {rows.shape[1]}, the length of the vectors, got {settings.rank}"
        )
    row_names = _check_ids(ids, len(rows), settings.kernel)
    identity = settings.identity()
    if checkpoint is not None:
        identity |= {"feedback": describe_callable(feedback), "items and vectors": neighbours.sha256()}
    if labels is not None and (queries is not None or resume is not None):
        raise InvalidParameterError(
            "queries and resume are for labels that fit makes: leave them out, or leave out labels"
        )
    if split is not None and queries is not None:
        raise InvalidParameterError("queries has no effect on a split: leave out one of the two")
    with hold_lock(checkpoint):
        if checkpoint is not None:
            # A wrong file is refused now, before hours of labelling.
            read_checkpoint(checkpoint, identity, partly=True)
        if split is None:
            if labels is not None:
                labels = list(labels)
                queries = dict.fromkeys(entry.query for entry in labels)
            split = split_queries(neighbours, queries, settings)
        split = check_split(split, len(neighbours))
        picks = HeldOut(neighbours, rows, split, feedback, settings.k, settings.fetch_k, row_names)
        tell = say or (lambda line: sys.stderr.write(line + "\n"))
        # An item gets one prompt in each epoch, one before the first, and one for each of six unlearned selectors.
        prompts = len(split.held_out) * (settings.epochs + 1 + 6)
        to_fit = f"to fit: at most {prompts:,} prompts, for the picks of {len(split.held_out)} held-out items"
        estimates: list[str] = []

        def tell_both(estimate: str) -> None:
            estimates.append(estimate)
            tell(f"{estimate}\n{to_fit}")

        if labels is None:
            with rename_arguments({"candidates": argument_name("fetch_k")}):
                labels = label(
                    neighbours.items, rows, feedback, k=settings.k, candidates=settings.fetch_k,
                    draw="greedy" if settings.listwise else "random", subsets=settings.subsets, seed=settings.seed,
                    queries=split.labelled(settings.listwise), examples=split.examples,
                    resume=resume, progress=progress, say=tell_both,
                )  # fmt: skip
        checked_labels = check_labels(labels, len(neighbours))
        trained, measured = _divide(checked_labels, split)
        if getattr(feedback, "remote", False) and not estimates:
            tell(to_fit)
        if checkpoint is not None:
            identity |= {"held-out items": split.sha256(), "labels": digest_labels(checked_labels)}
        task = make_task(settings, neighbours, rows, split, trained, measured, row_names)
        run = Run(task, picks, settings, checkpoint, identity)
        run.train(progress, on_epoch)
    return run.fitted()


def _divide(labels: Sequence[LabelledSubset], split: Split) -> tuple[list[LabelledSubset], list[LabelledSubset]]:
    """The labels to train on and those of held-out queries; a warning says how many hold held-out items."""
    examples, queries, held_out = set(split.examples), set(split.trained), set(split.held_out)
    clean = [entry for entry in labels if examples.issuperset(entry.subset)]
    trained, measured = ([entry for entry in clean if entry.query in part] for part in (queries, held_out))
    count = sum(entry.query in queries for entry in labels)
    if not count:
        raise InvalidInputError("no label belongs to an item that is trained on: label the items of split.trained")
    lost = f"{count - len(trained):,} of the {count:,} labelled subsets of trained items hold held-out items"
    if not trained:
        raise InvalidInputError(f"labels: {lost}: draw more subsets, hold out fewer items, or label again")
    if count > len(trained):
        warn(f"labels: {lost} and are left out")
    return trained, measured


def _check_device(device: Any) -> None:
    torch = import_library("torch", "train")
    try:
        # A device with a valid name may be missing on this machine, or may not support float64.
        torch.zeros(1, dtype=torch.float64, device=device)
    except (RuntimeError, TypeError, AssertionError, NotImplementedError) as error:
        raise InvalidParameterError(f"device {quoted(device)} cannot be used: {error}") from None


def _check_ids(ids: Sequence[Hashable] | None, n: int, kernel: str) -> list[Hashable] | None:
    if ids is None:
        return None
    if kernel == "linear":
        raise InvalidParameterError("ids name the rows of kernel='rows'; a linear kernel has no rows: leave ids out")
    names = as_names(ids, n, "ids")
    if len(set(names)) < n:
        raise InvalidInputError("ids: a name occurs more than once; each item needs its own")
    return list(names)
