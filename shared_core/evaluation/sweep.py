"""The settings that a comparison tries."""

from __future__ import annotations

from ..selectors.base import Selector
from ..selectors.mmr import MMR
from ..selectors.ndpp import NDPP
from ..selectors.top_k import TopK
from ..selectors.vrsd import VRSD
from .results import Setting

LAMBDAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
TEMPERATURES = (0.05, 0.1, 0.2, 0.5)


def sweep() -> list[tuple[Setting, Selector]]:
    """Every method, those that have a parameter at several of its values; plain similarity first.

    >>> [setting.label for setting, _ in sweep()][:3]
    ['similarity', 'MMR λ .1', 'MMR λ .2']
    """
    settings = [named("similarity", TopK())]
    settings += [named("MMR", MMR(lambda_d=value), "λ", value) for value in LAMBDAS]
    settings += [named("VRSD", VRSD()), named("VRSD refined", VRSD(refine=True)), named("NDPP", NDPP())]
    settings += [
        named("NDPP exponential", NDPP(relevance="exponential", temperature=value), "τ", value)
        for value in TEMPERATURES
    ]
    return settings


def named(
    method: str, selector: Selector, symbol: str = "", parameter: float | None = None
) -> tuple[Setting, Selector]:
    """A selector with its setting; ``symbol`` and ``parameter`` where one of its parameters is swept.

    >>> from shared_core import MMR
    >>> named("MMR", MMR(lambda_d=0.5), "λ", 0.5)[0]
    Setting(method='MMR', label='MMR λ .5', parameter=0.5, selector='MMR(lambda_d=0.5, lambda_b=0.95)')
    """
    label = method if parameter is None else f"{method} {symbol} {parameter:g}".replace(" 0.", " .")
    return Setting(method, label, parameter, repr(selector)), selector
