"""benchmarks/references.py on a corpus made up here."""

from __future__ import annotations

import pytest

from benchmarks.references_corpora import MISLEADING


@pytest.mark.parametrize("name", MISLEADING)
def test_each_question_can_be_answered(name: str) -> None:
    regime, is_on_topic = MISLEADING[name]()
    everything = list(range(len(regime.texts)))
    assert regime.names is not None
    assert len(regime.texts) == len(regime.names)
    for number, case in enumerate(regime.cases):
        assert case.worth(everything) == 1
        assert 2 <= sum(is_on_topic(number, row) for row in everything) <= 20
