"""Fitting a kernel to pseudo-labels, and measuring what it is worth (NDPP paper, 4.3)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._validation import as_names, as_numeric, check_integer, check_number, check_one_of
from ..errors import InvalidInputError, InvalidParameterError
from ..selectors.base import Selector
from ..selectors.ndpp import NDPP
from ..selectors.top_k import TopK
from ..selectors.vrsd import VRSD
from .checkpoint import read_checkpoint
from .feedback.coverage import Feedback
from .held_out import HeldOut
from .labels.given import checked_labels, digest_of, split_labels
from .labels.label_file import name_of
from .labels.labelling import LabelledSubset, best, label
from .neighbours import Neighbours
from .results import Epoch, Fitted

try:
    import torch
except ImportError as error:
    raise ImportError('learning a kernel needs torch: pip install "setselect[train]"') from error

from .objectives.likelihood import NORMALISATIONS
from .objectives.task import likelihood_task, listwise_task, make_factors
from .training import Run

OBJECTIVES = ("listwise", "likelihood")
KERNELS = ("linear", "rows")


def fit(
    items: Sequence[Mapping[str, Any]],
    vectors: ArrayLike,
    feedback: Feedback,
    labels: Iterable[LabelledSubset] | None = None,
    *,
    queries: Iterable[int] | None = None,
    resume: str | os.PathLike[str] | None = None,
    objective: str = "listwise",
    kernel: str = "linear",
    k: int = 4,
    fetch_k: int = 100,
    ids: Sequence[Hashable] | None = None,
    rank: int | None = None,
    skew_rank: int = 32,
    temperature: float = 0.1,
    learn_relevance: bool = True,
    sharpness: float = 0.6,
    pull: float = 1e-3,
    share: float = 0.1,
    normalisation: str = "pool",
    alpha: float = 0.01,
    beta: float = 0.01,
    ridge: float = 1e-5,
    learning_rate: float | None = None,
    batch_size: int | None = None,
    epochs: int = 30,
    patience: int = 8,
    held_out: float = 0.2,
    seed: int = 0,
    device: Any = "cpu",
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = False,
    on_epoch: Callable[[Epoch], object] | None = None,
    say: Callable[[str], object] | None = None,
) -> Fitted:
    """Learn a kernel for :class:`NDPP` from labelled subsets of examples, and measure it on held-out items.

    After each epoch the kernel chooses, as it will when it serves, k examples for each held-out item; the feedback on
    these decides which epoch is kept, and whether learning helped at all: NDPP without a kernel, VRSD and similarity
    are measured on the same items, and there is a warning if one of them was as good within a standard error.

    ``objective="listwise"`` (the default) orders the subsets of each query by their determinant as the feedback
    does, under L' = R L R, and trains the relevance R along; see :class:`Listwise`. ``"likelihood"`` is the paper's
    (4.3): it makes the best subsets probable. It learns who is near whom more than what helps together, and often
    ends below the unlearned kernel.

    Parameters
    ----------
    items : sequence of n mappings
    vectors : array-like, shape (n, d)
        The items' embeddings.
    feedback : Feedback
    labels : iterable of LabelledSubset, optional
        From :func:`label`. By default they are made here: ``draw="greedy"`` for listwise, ``"random"`` for the
        likelihood, from the ``fetch_k`` nearest.
    queries, resume
        Where labels are made here: which rows are training items, and the file that keeps the labels, see
        :func:`label`. Without ``resume`` a fit that is killed asks the feedback for all of them again.
    objective : "listwise" or "likelihood"
    kernel : "linear" or "rows"
        A :class:`LinearKernel`, which serves items that come later too, or a :class:`LowRankKernel` with a row for
        each item. Both begin at the embeddings.
    k, fetch_k : int >= 1
        How many examples the held-out picks have, and out of how many of the nearest.
    ids : sequence of n hashables, optional
        What the rows of a :class:`LowRankKernel` are called; by default 0..n-1.
    rank : int >= 1, optional
        K, columns of V; by default d.
    skew_rank : int >= 0
        K', columns of B; 0 is a symmetric DPP.
    temperature : float > 0
        Of the exponential relevance; where the listwise objective begins.
    learn_relevance, sharpness, pull
        Listwise: whether a W_R is trained (otherwise the temperature alone), and see :class:`Listwise`.
    share, normalisation, alpha, beta, ridge
        Likelihood: the share of the labels to keep (:func:`best`; 4.2), and see :class:`Likelihood`.
    learning_rate : float > 0, optional
        Adam's; by default .001 for listwise and .01 for the likelihood (paper).
    batch_size : int >= 1, optional
        Queries (listwise, 32) or subsets in a step (likelihood: a fortieth of all, since each step takes a pass over
        the pool, but at least 64).
    epochs, patience : int >= 1
        At most so many, and fewer when so many in a row brought nothing better on the held-out items: feedback for
        listwise, likelihood for the likelihood.
    held_out : float in (0, 1)
        The share of the labelled items that is not trained on.
    seed : int >= 0
        Of the split, the start and the batches. On a CPU the same input and number of threads give the same kernel.
    device : str or torch.device
    checkpoint : path, optional
        Written after each epoch, in one step; a fit with the same input and settings goes on from there (``epochs``
        and ``patience`` may differ) and ends with the kernel of an undisturbed run.
    progress : bool
        Show a bar (tqdm).
    on_epoch : callable, optional
        Gets each :class:`Epoch`, those from a checkpoint too.
    say : callable, optional
        Gets a line with the size of what a ``remote`` feedback will be asked; by default it is written to standard
        error.

    Returns
    -------
    Fitted

    Raises
    ------
    InvalidInputError
        Items, vectors or labels do not fit each other, the labels teach nothing, fewer than two items are labelled,
        the feedback gives something else than a finite number, or ``checkpoint`` is some other file.
    InvalidParameterError
        A parameter is out of its range, ``checkpoint`` was begun with other settings, or the numbers ran out of their
        range.
    OSError
        ``checkpoint`` or ``resume`` cannot be written.
    ImportError
        torch, safetensors or tqdm is missing (extra ``train``).

    Warns
    -----
    SetSelectWarning
        Learning did not help.

    Examples
    --------
    >>> import warnings
    >>> from shared_core.learning import CoverageFeedback, fit
    >>> items = [{"question": f"{a} of {b}", "answer": f"{a}({b}(x))"} for a in "pqrs" for b in "uvw"]
    >>> vectors = np.random.default_rng(5).standard_normal((12, 6))
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # twelve items are too few to help, and it says so
    ...     fitted = fit(items, vectors, CoverageFeedback(), k=2, epochs=4)
    >>> len(fitted.history), fitted.kernel.W_V.shape
    (5, (6, 6))
    """
    check_one_of(objective, "objective", OBJECTIVES)
    check_one_of(kernel, "kernel", KERNELS)
    k, fetch_k = check_integer(k, "k", 1), check_integer(fetch_k, "fetch_k", 1)
    epochs, patience, seed = (
        check_integer(epochs, "epochs", 1),
        check_integer(patience, "patience", 1),
        check_integer(seed, "seed", 0),
    )
    if fetch_k < k:
        raise InvalidParameterError(f"fetch_k must be at least k={k}, got {fetch_k}")
    listwise = objective == "listwise"
    batch_size = None if batch_size is None else check_integer(batch_size, "batch_size", 1)
    rate = (
        (0.001 if listwise else 0.01) if learning_rate is None else check_number(learning_rate, "learning_rate", 1e-12)
    )
    check_number(temperature, "temperature", 1e-9)
    for value, name, low in (
        (sharpness, "sharpness", 1e-9), (pull, "pull", 0), (alpha, "alpha", 0), (beta, "beta", 0), (ridge, "ridge", 0)
    ):  # fmt: skip
        check_number(value, name, low)
    if check_number(share, "share", 0, 1) == 0:
        raise InvalidParameterError("share must be above 0, got 0")
    check_one_of(normalisation, "normalisation", NORMALISATIONS)
    try:
        # Not every device that has a name is there, or has float64.
        device = torch.zeros(1, dtype=torch.float64, device=device).device
    except (RuntimeError, TypeError, AssertionError, NotImplementedError) as error:
        raise InvalidParameterError(f"device {device!r} cannot be used: {error}") from None
    rank, skew_rank = None if rank is None else check_integer(rank, "rank", 1), check_integer(skew_rank, "skew_rank", 0)
    if not 0 < check_number(held_out, "held_out", 0, 1) < 1:
        raise InvalidParameterError(f"held_out must be between 0 and 1, got {held_out}")
    neighbours = Neighbours(items, vectors)
    rows = np.array(as_numeric(vectors, "vectors"))
    if kernel == "linear" and (rank or 1) > rows.shape[1]:
        raise InvalidParameterError(f"rank must be at most {rows.shape[1]}, the length of the vectors, got {rank}")
    if ids is not None and kernel == "linear":
        raise InvalidParameterError("ids name the rows of kernel='rows'; a linear kernel has none: leave them out")
    names = None if ids is None else list(ids)
    if names is not None and len(names) != len(rows):
        raise InvalidInputError(f"ids must be {len(rows)}, one for each item, got {len(names)}")
    if names is not None and len(set(as_names(names, len(rows), "ids"))) < len(names):
        raise InvalidInputError("ids: a name stands more than once; each item needs its own")
    settings: dict[str, Any] = {
        "objective": objective, "kernel": kernel, "k": k, "fetch_k": fetch_k, "rank": rank, "skew_rank": skew_rank,
        "temperature": temperature, "learning_rate": rate, "batch_size": batch_size, "held_out": held_out, "seed": seed,
    }  # fmt: skip
    if listwise:
        settings |= {"learn_relevance": learn_relevance, "sharpness": sharpness, "pull": pull}
    else:
        settings |= {"share": share, "normalisation": normalisation, "alpha": alpha, "beta": beta, "ridge": ridge}
    if checkpoint is not None:
        settings |= {"feedback": name_of(feedback), "items and vectors": neighbours.sha256()}
        # What is wrong with the file is to come to light before hours of labelling.
        if not Path(checkpoint).absolute().parent.is_dir():
            raise InvalidParameterError(f"checkpoint: there is no folder {Path(checkpoint).absolute().parent}")
        read_checkpoint(checkpoint, settings, partly=True)
    if labels is None:
        labels = label(
            neighbours.items, rows, feedback, k=k, candidates=fetch_k, draw="greedy" if listwise else "random",
            queries=queries, seed=seed, resume=resume, progress=progress, say=say,
        )  # fmt: skip
    elif queries is not None or resume is not None:
        raise InvalidParameterError("queries and resume are for labels that are made here: leave them out with labels")
    known = checked_labels(labels, len(neighbours))
    trained, kept_back = split_labels(known, neighbours, held_out, seed)
    if getattr(feedback, "remote", False):
        # Each epoch, the one before the first, and what learns nothing.
        prompts = len(kept_back) * (epochs + 1 + 4)
        tell = say or (lambda line: sys.stderr.write(line + "\n"))
        tell(f"to fit: at most {prompts:,} prompts, for the picks of {len(kept_back)} held-out items")
    mean = HeldOut(neighbours, rows, kept_back, feedback, k, fetch_k, names)
    # The likelihood weighs all subsets of the pool: it begins where they have about k items.
    factors = make_factors(kernel, rows, rank or rows.shape[1], skew_rank, seed, device, None if listwise else k)
    if listwise:
        task = listwise_task(
            factors, rows, trained, ids=names, temperature=temperature, learn_relevance=learn_relevance,
            sharpness=sharpness, pull=pull, learning_rate=rate,
        )  # fmt: skip
    else:
        back = set(kept_back)
        # The best of each part by itself: what is held out must not decide what is trained on.
        task = likelihood_task(
            factors, neighbours, rows, best(trained, share), best((e for e in known if e.query in back), share),
            ids=names, temperature=temperature, fetch_k=fetch_k, normalisation=normalisation, alpha=alpha, beta=beta,
            ridge=ridge, learning_rate=rate,
        )  # fmt: skip
    unlearned: list[Selector] = [NDPP(), NDPP(relevance="exponential", temperature=temperature), VRSD(), TopK()]
    if checkpoint is not None:
        settings["labels"] = digest_of(known)
    if batch_size is None:
        batch_size = 32 if listwise else max(64, task.size // 40)
    run = Run(task, mean, unlearned, batch_size, seed, checkpoint, settings)
    run.go_on(epochs, patience, progress, on_epoch)
    return run.fitted()
