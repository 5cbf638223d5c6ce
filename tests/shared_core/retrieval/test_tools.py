"""What the selection of tools does for both frameworks: what is asked, and which vectors are kept."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from shared_core.retrieval import tools
from shared_core.retrieval.flow import Flow, Step, run_flow
from shared_core.retrieval.tools import EmbeddingModel, Tool, ToolKind, ToolSelector, Turn, read_turn
from tests.embedding import embed

LONG = "please find a good hotel in Rome"


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ([], []),
        ([(False, "Hello")], []),
        ([(True, " ")], []),
        ([(True, LONG)], [LONG]),
        ([(True, "before"), (False, "an answer"), (True, LONG)], [LONG]),
        ([(True, LONG), (False, "I am going to look"), (False, "")], [LONG, "I am going to look"]),
        ([(True, LONG), (False, "Shall I book it?"), (True, "Yes"), (False, "Well")], [
            LONG, "Shall I book it?", "Yes", "Well",
        ]),
        ([(True, "Hi"), (False, "Hello!"), (True, "Book it")], ["Book it", "Hi", "Hello!"]),
        ([(True, LONG), (False, "a"), (True, "b"), (False, "c"), (True, "d"), (False, "e"), (True, "f")], [
            "f", "d", "e",
        ]),
        ([(True, LONG), (True, " ")], [LONG]),
    ],
)  # fmt: skip
def test_read_turn(said: list[tuple[bool, str]], asked: list[str]) -> None:
    assert [*read_turn(said, {"a"}).asked] == asked
    assert read_turn(said, {"a"}).called == {"a"}


class Model:
    """Embeds words, and keeps what it was asked for."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.questions: list[str] = []

    def embed_with(self, kept: list[str]) -> Any:
        def embed_all(texts: list[str]) -> Flow[Any]:
            kept.extend(texts)
            return (yield Step(lambda: np.array([embed(text) for text in texts])))

        return embed_all

    def as_model(self) -> EmbeddingModel:
        return EmbeddingModel(self, self.embed_with(self.texts), self.embed_with(self.questions), "words")


KIND = ToolKind(lambda name: Tool.of(name, name, f"the {name} of a person", ()), lambda name: {"name": name})
NAMES = ["weather", "hotel", "train", "photo", "music", "email"]


def names_for(model: Model, *asked: str, most: int = 2, names: Sequence[str] = NAMES, **settings: Any) -> set[str]:
    selector = ToolSelector("test", KIND, model.as_model(), most, (), settings)
    return {*run_flow(selector.select(names, Turn(asked)))[0]}


def test_texts_besides_the_request_count_if_they_are_near_to_a_tool() -> None:
    model = Model()
    request = "the weather of a person"
    assert "photo" in names_for(model, request, "I have found it, and now I need the photo of a person")
    alone = names_for(model, request)
    assert names_for(model, request, "Understood, let us begin with something") == alone
    # A selector for one question gets one, and queries of the user take the place of all others.
    assert names_for(model, request, "the photo of a person", selector="vrsd") == names_for(
        model, request, selector="vrsd"
    )
    assert names_for(model, request, "the photo of a person", queries=["the train of a person"]) == {
        "weather", "train",
    }  # fmt: skip


def test_a_tool_that_another_one_mentions_comes_along() -> None:
    about = {"change_invoice": "changes a bill; needs the id that find_customer returns", "find_customer": "a bill"}
    about |= {f"{verb}_invoice": f"a bill, to {verb} it" for verb in ("print", "send", "delete", "pay")}
    kind = ToolKind(lambda name: Tool.of(name, name, about[name], ()), lambda name: name)
    selector = ToolSelector("test", kind, Model().as_model(), 2, (), {})
    selected, make_event = run_flow(selector.select([*about], Turn(["changes the bill of people"])))
    assert selected == ["change_invoice", "find_customer"]
    assert make_event()["referred_by"] == [None, "change_invoice"]


def test_each_text_is_embedded_once_as_long_as_the_model_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()
    for _ in range(3):
        names_for(model, "the weather of a person and the train of a person")
    assert (len(model.texts), len(model.questions)) == (6, 3)
    vars(model)["name"] = "another model in the same object"
    names_for(model, "the weather of a person and the train of a person")
    assert (len(model.texts), len(model.questions)) == (12, 6)
    monkeypatch.setattr(tools, "MOST_TEXTS", 4)
    small = Model()
    names_for(small, "the weather", names=NAMES[:3])
    names_for(small, "the weather", names=NAMES[2:])
    names_for(small, "the weather", names=NAMES[2:])
    assert len(small.texts) == 3 + 3
    names_for(small, "the weather", names=NAMES[:3])
    assert len(small.texts) == 3 + 3 + 2
    name = id(small)
    assert name in tools._MEMORIES
    del small
    gc.collect()
    assert name not in tools._MEMORIES
