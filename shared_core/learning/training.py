"""The training loop: epochs, the feedback on held-out items after each, and checkpoints."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from .._files import remove_leftovers
from ..errors import InvalidInputError, InvalidParameterError, warn
from ..selectors.coverage import Coverage
from ..selectors.ndpp import NDPP
from ..selectors.registry import Selector
from ..selectors.top_k import TopK
from ..selectors.vrsd import VRSD
from ..signals.progress import progress_bar
from .checkpoint import read_checkpoint, write_checkpoint
from .held_out import HeldOut
from .objectives.task import Task
from .results import Epoch, Fitted
from .settings import FitSettings


class Run:
    """The training loop and its state, all of which goes into the checkpoint of a fit with this ``identity``."""

    def __init__(
        self,
        task: Task,
        held_out: HeldOut,
        settings: FitSettings,
        checkpoint: str | os.PathLike[str] | None,
        identity: dict[str, Any],
    ) -> None:
        self.task, self.held_out, self.settings = task, held_out, settings
        # A step of the likelihood reads the whole pool, so its batches are larger.
        self.batch_size = settings.batch_size or (32 if settings.listwise else max(64, task.size // 40))
        self.checkpoint, self.identity = checkpoint, identity
        self.adam = torch.optim.Adam(task.groups, fused=True)
        self.history: list[Epoch] = []
        self.values: list[float] = []
        self.best: dict[str, Any] = {}
        state = None if checkpoint is None else read_checkpoint(checkpoint, identity)
        if checkpoint is not None:
            remove_leftovers(checkpoint)
        if state is not None:
            try:
                self._load(*state)
            # Somebody can give a file with other content a right SHA-256.
            except (LookupError, TypeError, ValueError, AttributeError, RuntimeError):
                raise InvalidInputError(
                    f"{checkpoint}: does not fit this run; remove the file to start again"
                ) from None
            return
        # The last NDPP is the start of the fit. Without it, a fit that keeps epoch 0 could seem to have learned.
        start = NDPP(relevance_mapping="exponential", temperature=settings.temperature, ridge=0)
        unlearned = (Coverage(), NDPP(), NDPP(relevance_mapping="linear", ridge=0), start, VRSD(), TopK())
        self.unlearned = {_describe(selector): held_out.values(selector).tolist() for selector in unlearned}
        self._measure(None)

    def train(self, progress: bool, on_epoch: Callable[[Epoch], object] | None) -> None:
        """Train until ``epochs`` are over, or until ``patience`` epochs brought no improvement."""
        tell, epochs, patience = on_epoch or (lambda epoch: None), self.settings.epochs, self.settings.patience
        for epoch in self.history:
            tell(epoch)
        with progress_bar(progress, epochs, "epoch", "fitting", len(self.history) - 1) as advance:
            while len(self.history) <= epochs and len(self.history) - 1 - self._last_improvement() < patience:
                self._measure(self._train_epoch(len(self.history)))
                if self.checkpoint is not None:
                    self._save(self.checkpoint)
                epoch = self.history[-1]
                tell(epoch)
                advance(loss=f"{epoch.loss:.3g}", feedback=f"{epoch.feedback:.4g}")

    def fitted(self) -> Fitted:
        """The best epoch's kernel, compared with the selectors that learn nothing."""
        number = self._best_epoch()
        self.task.parts.load_state_dict(self.best)
        means = {name: float(np.mean(values)) for name, values in self.unlearned.items()}
        rival = max(means, key=means.__getitem__)
        difference = np.array(self.values) - np.array(self.unlearned[rival])
        error = float(difference.std(ddof=1) / len(difference) ** 0.5) if len(difference) > 1 else float("nan")
        fitted = Fitted(
            self.task.kernel(), number, self.history[number].feedback, means, float(difference.mean()), error,
            tuple(self.history), tuple(self.held_out.queries),
        )  # fmt: skip
        if {fitted.feedback} == {*means.values()}:
            warn(
                f"learning did not help: on {len(self.held_out.queries)} held-out items the picks of the kernel and "
                f"those of each selector that learns nothing have feedback {fitted.feedback:.4g}, so these items do "
                "not tell selectors apart. Learn from items that need more of their examples, or with a smaller k"
            )
        elif not fitted.helped:
            warn(
                f"learning did not help: on {len(self.held_out.queries)} held-out items the picks of the kernel have "
                f"feedback {fitted.feedback:.4g}, those of {rival}, which learns nothing, {means[rival]:.4g}; the "
                f"difference is {fitted.gain:.2g} with a standard error of {error:.2g}. Use {rival}, or learn from "
                "more items or subsets, or with another objective"
            )
        return fitted

    def _train_epoch(self, number: int) -> float:
        order = np.random.default_rng([self.settings.seed, 1, number]).permutation(self.task.size)
        total = 0.0
        for start in range(0, len(order), self.batch_size):
            batch = torch.from_numpy(order[start : start + self.batch_size])
            self.adam.zero_grad()
            loss = self.task.loss(batch)
            loss.backward()  # type: ignore[no-untyped-call]
            self.adam.step()
            total += loss.item() * len(batch)
        mean = total / len(order)
        if not np.isfinite(mean) or not all(bool(part.isfinite().all()) for part in self.task.parts.parameters()):
            raise InvalidParameterError(
                f"epoch {number}: the numbers overflowed (loss {mean}): lower the learning rate"
            )
        return mean

    def _measure(self, loss: float | None) -> None:
        values = self.held_out.values(NDPP(self.task.kernel()))
        likelihood = None if self.task.likelihood is None else float(self.task.likelihood().mean())
        self.history.append(Epoch(len(self.history), loss, likelihood, float(values.mean())))
        if self._best_epoch() == len(self.history) - 1:
            self.values = values.tolist()
            self.best = {name: part.detach().clone() for name, part in self.task.parts.state_dict().items()}

    def _best_epoch(self) -> int:
        """The number of the first epoch with the highest feedback."""
        return int(np.argmax([epoch.feedback for epoch in self.history]))

    def _last_improvement(self) -> int:
        """The number of the last epoch that brought an improvement."""
        if self.task.likelihood is None:
            return self._best_epoch()
        return int(np.argmax([epoch.likelihood for epoch in self.history]))  # type: ignore[arg-type]

    def _save(self, path: str | os.PathLike[str]) -> None:
        tensors = {f"now.{name}": part for name, part in self.task.parts.state_dict().items()}
        tensors |= {f"best.{name}": part for name, part in self.best.items()}
        for place, state in self.adam.state_dict()["state"].items():
            tensors |= {f"adam.{place}.{name}": part for name, part in state.items()}
        epochs = [[e.number, e.loss, e.likelihood, e.feedback] for e in self.history]
        write_checkpoint(
            path, tensors, self.identity, {"epochs": epochs, "values": self.values, "unlearned": self.unlearned}
        )

    def _load(self, tensors: dict[str, Any], state: dict[str, Any]) -> None:
        self.history = [Epoch(*entry) for entry in state["epochs"]]
        self.values, self.unlearned = state["values"], state["unlearned"]
        kinds: dict[str, dict[str, Any]] = {"now": {}, "best": {}, "adam": {}}
        for name, tensor in tensors.items():
            kind, _, rest = name.partition(".")
            kinds[kind][rest] = tensor
        self.task.parts.load_state_dict(kinds["now"])
        self.best = kinds["best"]
        whole = self.adam.state_dict()
        for name, tensor in kinds["adam"].items():
            place, _, what = name.partition(".")
            whole["state"].setdefault(int(place), {})[what] = tensor
        self.adam.load_state_dict(whole)


def _describe(selector: Selector) -> str:
    """The repr of a selector without the parameters that have their defaults."""
    parameters = [
        f"{field.name}={getattr(selector, field.name)!r}"
        for field in dataclasses.fields(selector)  # type: ignore[arg-type]
        if getattr(selector, field.name) != field.default
    ]
    return f"{type(selector).__name__}({', '.join(parameters)})"
