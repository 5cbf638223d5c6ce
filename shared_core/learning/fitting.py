"""Fitting a kernel to pseudo-labels (scored subsets), and measuring it on held-out items (NDPP paper, 4.3)."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import as_numeric, import_library
from .._values import as_names
from ..candidates import Candidates
from ..errors import InvalidInputError, InvalidParameterError, argument_name, quoted, rename_arguments, warn
from ..selection.route import select_set
from ..selectors.coverage import Coverage
from ..selectors.kernels import LinearKernel, LowRankKernel
from ..selectors.ndpp import NDPP
from ..selectors.registry import Selector
from ..selectors.top_k import TopK
from ..selectors.vrsd import VRSD
from ..signals.language_models import progress_bar
from ..texts import Texts
from .feedback import Feedback, score_all
from .labels import LabelledSubset, check_labels, label, print_line
from .pool import Neighbours, Split, check_split, split_queries
from .settings import FitSettings

if TYPE_CHECKING:
    from .objective import Task

Kernel = LinearKernel | LowRankKernel


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
        Rows of the held-out queries.

    Examples
    --------
    >>> fitted = Fitted(LinearKernel([[1.0]]), 2, 0.9, {"NDPP()": 0.8}, 0.1, 0.02, (), (3,))
    >>> fitted.helped, fitted.selector.kernel
    (True, LinearKernel(d=1, K=1, K'=0))
    """

    kernel: Kernel
    epoch: int
    feedback: float
    unlearned: Mapping[str, float]
    gain: float
    standard_error: float
    history: tuple[Epoch, ...]
    held_out: tuple[int, ...]

    @property
    def helped(self) -> bool:
        """Whether the gain exceeds one standard error; below two or three it may be chance."""
        return self.gain > self.standard_error

    @property
    def selector(self) -> NDPP:
        """The selector that was measured: NDPP with the kernel and the relevance that was learned with it."""
        return NDPP(self.kernel)


def fit(
    items: Sequence[Mapping[str, Any]],
    vectors: ArrayLike,
    feedback: Feedback,
    labels: Iterable[LabelledSubset] | None = None,
    *,
    split: Split | None = None,
    resume: str | os.PathLike[str] | None = None,
    ids: Sequence[Hashable] | None = None,
    progress: bool = False,
    on_epoch: Callable[[Epoch, Kernel], object] | None = None,
    say: Callable[[str], object] | None = None,
    **options: Any,
) -> Fitted:
    """Learn a kernel for :class:`NDPP` from labelled subsets of examples, and measure it on held-out items.

    After each epoch the kernel selects k of the other items as examples for each held-out item: a new query that meets
    known examples. The feedback for these examples decides which epoch is kept and whether learning helped; nothing
    else is fitted to held-out items. A warning is given if the gain does not exceed one standard error.

    Parameters
    ----------
    items, vectors, feedback, resume, progress, say
        As in :func:`label`; ``resume`` only if the labels are made here.
    labels : iterable of LabelledSubset, optional
        From :func:`label`. By default they are made here, from the ``fetch_k`` nearest items that are not held out,
        with ``draw="greedy"`` for the listwise objective and ``"random"`` for the likelihood.
    split : Split, optional
        From :func:`hold_out`. By default it is made here, of all rows, or of the queries of ``labels``. Pass the split
        with which given labels were drawn: subsets that contain held-out items are left out with a warning.
    ids : sequence of n hashables, optional
        Names of the rows of a :class:`LowRankKernel`; default: 0..n-1.
    on_epoch : callable, optional
        Called after each epoch, number 0 included, with its :class:`Epoch` and its kernel.
    **options
        Fields of :class:`FitSettings`, such as ``k=2``.

    Returns
    -------
    Fitted

    Raises
    ------
    InvalidInputError
        As :func:`label`; also if split or labels do not fit the items, or the labels teach nothing.
    InvalidParameterError
        A parameter is out of its range, or the numbers overflowed.

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
    torch = import_library("torch", "train")
    from .objective import make_task

    settings = FitSettings(**options)
    try:
        # A device with a valid name may be missing on this machine, or may not support float64.
        torch.zeros(1, dtype=torch.float64, device=settings.device)
    except (RuntimeError, TypeError, AssertionError, NotImplementedError) as error:
        raise InvalidParameterError(f"device {quoted(settings.device)} cannot be used: {error}") from None
    neighbours = Neighbours(items, vectors)
    rows = np.array(as_numeric(vectors, "vectors"))
    if ids is not None and settings.kernel == "linear":
        raise InvalidParameterError("ids name the rows of kernel='rows'; a linear kernel has no rows: leave ids out")
    if settings.kernel == "linear" and settings.rank is not None and settings.rank > rows.shape[1]:
        most = f"{rows.shape[1]}, the length of the vectors, with a linear kernel"
        raise InvalidParameterError(f"{argument_name('rank')} must be at most {most}; got {settings.rank}")
    row_names = None if ids is None else as_names(ids, len(rows), "ids")
    if labels is not None:
        if resume is not None:
            raise InvalidParameterError("resume is for labels that fit makes: leave it out, or leave out labels")
        labels = list(labels)
    if split is None:
        queries = None if labels is None else dict.fromkeys(entry.query for entry in labels)
        split = split_queries(neighbours, queries, settings)
    split = check_split(split, len(neighbours))
    held_out = HeldOut(neighbours, rows, split, feedback, settings.k, settings.fetch_k, row_names)
    # An item gets one prompt in each epoch, one before the first, and one for each of six unlearned selectors.
    prompts = len(split.held_out) * (settings.epochs + 1 + 6)
    to_fit = f"to fit: at most {prompts:,} prompts, for the picks of {len(split.held_out)} held-out items"
    if labels is None:
        with rename_arguments({"candidates": argument_name("fetch_k")}):
            labels = label(
                neighbours.items, rows, feedback, k=settings.k, candidates=settings.fetch_k,
                draw="greedy" if settings.listwise else "random", subsets=settings.subsets, seed=settings.seed,
                queries=split.labelled(settings.listwise), examples=split.examples,
                resume=resume, progress=progress, say=lambda cost: (say or print_line)(f"{cost}\n{to_fit}"),
            )  # fmt: skip
    trained, measured = _divide(check_labels(labels, len(neighbours)), split)
    run = _Run(make_task(settings, rows, split, trained, measured, row_names), held_out, settings)
    run.train(progress, on_epoch or (lambda epoch, kernel: None))
    return run.fitted()


def _divide(labels: Sequence[LabelledSubset], split: Split) -> tuple[list[LabelledSubset], list[LabelledSubset]]:
    """The labels to train on and those of held-out queries; a warning says how many hold held-out items."""
    examples, queries, held_out = set(split.examples), set(split.trained), set(split.held_out)
    clean = [entry for entry in labels if examples.issuperset(entry.subset)]
    trained, measured = ([entry for entry in clean if entry.query in part] for part in (queries, held_out))
    count = sum(entry.query in queries for entry in labels)
    lost = f"{count - len(trained):,} of the {count:,} labelled subsets of trained items hold held-out items"
    if not trained:
        raise InvalidInputError(f"labels: {lost}: label the items of split.trained with subsets of split.examples")
    if count > len(trained):
        warn(f"labels: {lost} and are left out")
    return trained, measured


class HeldOut:
    """The feedback for a selector's picks of k of the ``fetch_k`` examples that are nearest to each held-out query."""

    def __init__(
        self,
        neighbours: Neighbours,
        vectors: NDArray[np.floating],
        split: Split,
        feedback: Feedback,
        k: int,
        fetch_k: int,
        ids: Sequence[Hashable] | None = None,
    ) -> None:
        self._items, self._feedback, self._k = neighbours.items, feedback, k
        self.queries = list(split.held_out)
        self._vectors, self._ids = vectors, ids
        self._rows = neighbours.nearest(self.queries, fetch_k, split.examples)
        # No set of picks is scored twice.
        self._known: dict[tuple[int, tuple[int, ...]], float] = {}

    def picks(self, selector: Selector) -> list[tuple[int, ...]]:
        """Rows of the pool that the selector picks for each query, the most similar last."""
        picks = []
        for query, rows in zip(self.queries, self._rows, strict=True):
            ids = rows.tolist() if self._ids is None else [self._ids[row] for row in rows]
            # The vectors are copied for one query at a time: those of all queries together would fill the memory.
            candidates = Candidates(self._vectors[query], self._vectors[rows], ids=ids)
            question, texts = self._read_questions(query, rows.tolist())
            places = select_set(candidates, selector, min(self._k, len(rows)), question=question, texts=texts).indices
            # The candidates are sorted, the nearest first, so the highest index is the least similar pick.
            picks.append(tuple(rows[np.sort(places)[::-1]].tolist()))
        return picks

    def _read_questions(self, query: int, rows: list[int]) -> tuple[str, Texts | None]:
        """The question of an item, and those of others; no texts if an item has none."""
        items = [self._items[row] for row in (query, *rows)]
        questions = [text for item in items if isinstance(text := item.get("question"), str)]
        if len(questions) < len(items):
            return "", None
        # Examples do not refer to each other, as in the example selectors.
        return questions[0], Texts(questions[1:], refer=False)

    def values(self, selector: Selector) -> NDArray[np.float64]:
        """The feedback for each query's picks, shape (m,)."""
        keys = list(zip(self.queries, self.picks(selector), strict=True))
        missing = [key for key in dict.fromkeys(keys) if key not in self._known]
        pairs = [(self._items[query], [self._items[row] for row in subset]) for query, subset in missing]
        where = [f"held-out item {query}, rows {subset}" for query, subset in missing]
        self._known.update(zip(missing, score_all(self._feedback, pairs, where), strict=True))
        return np.array([self._known[key] for key in keys])


class _Run:
    """The training loop: epochs, and after each the feedback on the held-out items."""

    def __init__(self, task: Task, held_out: HeldOut, settings: FitSettings) -> None:
        self.task, self.held_out, self.settings = task, held_out, settings
        # The last NDPP is the start of the fit. Without it, a fit that keeps epoch 0 could seem to have learned.
        start = NDPP(relevance_mapping="exponential", temperature=settings.temperature, ridge=0)
        unlearned = (Coverage(), NDPP(), NDPP(relevance_mapping="linear", ridge=0), start, VRSD(), TopK())
        self.unlearned = {_describe(selector): held_out.values(selector) for selector in unlearned}
        self.history: list[Epoch] = []

    def train(self, progress: bool, on_epoch: Callable[[Epoch, Kernel], object]) -> None:
        """Train until ``epochs`` are over, or until ``patience`` epochs brought no improvement."""
        import torch

        task, epochs, patience = self.task, self.settings.epochs, self.settings.patience
        size = len(task.loss)
        # A step of the likelihood reads the whole pool, so its batches are larger.
        batch_size = self.settings.batch_size or (32 if self.settings.listwise else max(64, size // 40))
        adam = torch.optim.Adam(task.groups, fused=True)
        self._measure(None, on_epoch)
        with progress_bar(progress, epochs, "epoch", "fitting") as advance:
            for number in range(1, epochs + 1):
                order = np.random.default_rng([self.settings.seed, 1, number]).permutation(size)
                total = 0.0
                for batch in torch.split(torch.from_numpy(order), batch_size):
                    adam.zero_grad()
                    loss = task.loss(batch)
                    loss.backward()  # type: ignore[no-untyped-call]
                    adam.step()
                    total += loss.item() * len(batch)
                mean = total / size
                if not np.isfinite(mean) or not all(bool(part.isfinite().all()) for part in task.parts.parameters()):
                    raise InvalidParameterError(
                        f"epoch {number}: the numbers overflowed (loss {mean}): lower the learning rate"
                    )
                epoch = self._measure(mean, on_epoch)
                advance(loss=f"{mean:.3g}", feedback=f"{epoch.feedback:.4g}")
                if number - self._last_improvement() >= patience:
                    break

    def fitted(self) -> Fitted:
        """The best epoch's kernel, compared with the selectors that learn nothing."""
        number = self._best_epoch()
        means = {name: float(np.mean(values)) for name, values in self.unlearned.items()}
        rival = max(means, key=means.__getitem__)
        difference = self.values - self.unlearned[rival]
        error = float(difference.std(ddof=1) / len(difference) ** 0.5) if len(difference) > 1 else float("nan")
        fitted = Fitted(
            self.kernel, number, self.history[number].feedback, means, float(difference.mean()), error,
            tuple(self.history), tuple(self.held_out.queries),
        )  # fmt: skip
        if not fitted.helped:
            same = ", so these items do not tell selectors apart" if {fitted.feedback} == {*means.values()} else ""
            warn(
                f"learning did not help: on {len(self.held_out.queries)} held-out items the picks of the kernel have "
                f"feedback {fitted.feedback:.4g}, those of {rival}, which learns nothing, {means[rival]:.4g}{same}; "
                f"the difference is {fitted.gain:.2g} with a standard error of {error:.2g}. Use {rival}, or learn from "
                "more items or subsets, or with another objective"
            )
        return fitted

    def _measure(self, loss: float | None, on_epoch: Callable[[Epoch, Kernel], object]) -> Epoch:
        kernel = self.task.kernel()
        values = self.held_out.values(NDPP(kernel))
        likelihood = None if self.task.held_out is None else float(self.task.held_out.values().mean())
        epoch = Epoch(len(self.history), loss, likelihood, float(values.mean()))
        self.history.append(epoch)
        if self._best_epoch() == epoch.number:
            self.kernel, self.values = kernel, values
        on_epoch(epoch, kernel)
        return epoch

    def _best_epoch(self) -> int:
        """The number of the first epoch with the highest feedback."""
        return int(np.argmax([epoch.feedback for epoch in self.history]))

    def _last_improvement(self) -> int:
        """The number of the last epoch that brought an improvement."""
        if self.task.held_out is None:
            return self._best_epoch()
        return int(np.argmax([epoch.likelihood for epoch in self.history]))  # type: ignore[arg-type]


def _describe(selector: Selector) -> str:
    """The repr of a selector without the parameters that have their defaults."""
    parameters = [
        f"{field.name}={getattr(selector, field.name)!r}"
        for field in dataclasses.fields(selector)  # type: ignore[arg-type]
        if getattr(selector, field.name) != field.default
    ]
    return f"{type(selector).__name__}({', '.join(parameters)})"
