"""What agents need: the set of tools for a request, and what the calls of a retriever tool have returned."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
import weakref
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from datetime import date, datetime
from functools import lru_cache, partial
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import check_number
from .._values import as_identifiers, as_plain, as_text, is_missing
from ..candidates import as_unit_queries, as_unit_rows
from ..errors import InvalidInputError, InvalidParameterError, quoted, warn
from ..selection.route import DEFAULT_EXTRA_K
from ..texts.words import match_split_words, read_text, split_clauses, split_words
from .events import LOGGER, describe, is_first
from .flow import Flow, Step
from .inputs import EmbeddedQuery, Vector, embed_question, refuse_unknown, where_to_pass_parameters
from .pool import ItemSelection, Pool, stack_vectors
from .request import Request
from .settings import Call, Settings

DEFAULT_MAX_TOOLS = 10
# Among so many tools all are candidates. Of more, so many are the nearest ones, and the best by words join them.
MOST_CANDIDATES = 100
# So much of a description, and of a request, is read: an embedding model takes no longer texts, or cuts them by itself.
MOST_CHARACTERS = 4_000
# How many vectors of texts, and of questions, are kept for each embedding model.
MOST_TEXTS, MOST_QUESTIONS = 10_000, 256
# A model counts its tokens by itself. Four characters of English or of JSON are about one.
CHARACTERS_PER_TOKEN = 4
# A message with fewer words ("Yes, please.") says little without the ones before it. So many of these are read.
FEWEST_WORDS, MOST_EARLIER = 6, 2
# Of what was said besides the request, so many clauses are read. One counts if its nearest tool is at least this share
# as near as that of the clause of the request whose nearest tool is the farthest: the measure of "near" is the model's.
MOST_FURTHER, LEAST_SHARE = 8, 0.7
# What a retriever tool says in place of texts.
NOTHING_NEW = "Nothing new was found for this query."
EMPTY_QUERY = "The query is empty: say in words what to look for."
# A step of an agent is forgotten after so many later ones; its calls have long returned.
_STEPS = 1_000
# Settings that say nothing of a set of tools, and why.
_REMEDIES = MappingProxyType(
    {
        "shown": "always_include names the tools that every request gets",
        **dict.fromkeys(("order", "scores", "shadow"), "tools come back unchanged, in their order"),
        **dict.fromkeys(
            ("fetch_k", "follow", "keyword_search", "extra_retrievers", "extra_k"), "all tools are candidates"
        ),
    }
)


class Tool(NamedTuple):
    """A tool: its name, the text by which it is selected, and the framework's object."""

    id: str
    text: str
    original: Any
    # A metadata key that is the value of a setting is looked up here.
    metadata: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        original: Any,
        name: str,
        description: str | None,
        arguments: Iterable[str],
        metadata: Mapping[str, Any] | None = None,
    ) -> Tool:
        """A tool, whose text is made of its name, its description and the names of its arguments."""
        listed = ", ".join(arguments)
        lines = [f"{name}: {(description or '').strip()[:MOST_CHARACTERS]}"]
        lines += [f"Arguments: {listed[:MOST_CHARACTERS]}"] if listed else []
        # Other tools mention a tool by its name, so the name is its title.
        return cls(name, "\n".join(lines), original, {"title": name, **(metadata or {})})


class ToolKind(NamedTuple):
    """What the tools of a framework are.

    ``read`` gives None for a tool of the provider, which passes unchanged, and raises an InvalidInputError for what is
    no tool. ``schema`` gives what a model is told of a tool, as JSON has it.
    """

    read: Callable[[Any], Tool | None]
    schema: Callable[[Any], Any]

    def count_tokens(self, original: Any) -> float:
        """About how many tokens a tool takes in the prompt."""
        return len(json.dumps(self.schema(original), ensure_ascii=False, default=str)) / CHARACTERS_PER_TOKEN


class EmbeddingModel(NamedTuple):
    """The embedding model of a framework: itself, the flows from texts to their vectors, and its name in words."""

    model: Any
    embed_texts: Callable[[list[str]], Flow[Any]]
    embed_questions: Callable[[list[str]], Flow[Any]]
    source: str


class Turn(NamedTuple):
    """What an agent is asked, and the names of the tools that it has called since.

    ``asked`` holds the request, and what was said besides it. ``system`` is the text of the system message.
    """

    asked: Sequence[str]
    called: Collection[str] = ()
    system: str = ""


# By the name of a model, and a text.
_Memory = dict[tuple[str, str], Vector]
# The vectors of the texts, and of the questions, that were asked for last, by the id of the embedding model. All who
# select with it share them, and they live as long as it.
_MEMORIES: dict[int, tuple[_Memory, _Memory]] = {}
_REMEMBERING = threading.Lock()


def _look_up(
    memory: _Memory, model: Any, most: int, texts: Sequence[str], embed: Callable[[list[str]], Flow[Any]]
) -> Flow[list[Vector]]:
    """The vectors of the texts. Those that are new are embedded in one call."""
    # A model may get another name, instruction or address, and then gives other vectors.
    name = repr([value for value in getattr(model, "__dict__", {}).values() if isinstance(value, str)])
    known = {text: vector for text in texts if (vector := memory.get((name, text))) is not None}
    new = [text for text in dict.fromkeys(texts) if text not in known]
    if new:
        known |= zip(new, (yield from embed(new)), strict=True)
    with _REMEMBERING:
        for text, vector in known.items():
            memory.pop((name, text), None)
            memory[name, text] = vector
        while len(memory) > max(most, len(known)):
            del memory[next(iter(memory))]
    return [known[text] for text in texts]


class _ToolCall(Call):
    size_name = "max_tools"


class ToolSelector:
    """Selects the tools for a request of an agent, with the settings of an adapter's class or function.

    A request is never lost to the selection: if the embedding model fails, or there is no text to select by, it gets
    all tools.
    """

    def __init__(
        self,
        owner: str,
        kind: ToolKind,
        model: EmbeddingModel,
        max_tools: int | None,
        always_include: Iterable[str],
        settings: Mapping[str, Any],
        call: type[Call] = _ToolCall,
    ) -> None:
        self.kind, self.model = kind, model
        self.always = tuple(map(str, as_identifiers(always_include, "always_include")))
        known = {call.size_name, *Settings.model_fields} - _REMEDIES.keys()
        sizes = dict.fromkeys(("k", "max_tools", "similarity_top_k"), f"pass {call.size_name}")
        refuse_unknown(owner, settings, known, {**where_to_pass_parameters(), **_REMEDIES, **sizes})
        fields = dict(settings)
        if fields.get("budget") is not None:
            check_number(fields["budget"], "budget", 0)
            fields.setdefault("costs", kind.count_tokens)
        elif max_tools is None:
            raise InvalidParameterError(f"{call.size_name}=None needs a budget, which ends the selection in its place")
        self.request = Request(
            call(**fields, k=max_tools, shown=self.always), view=lambda tool: tool.original, refer_by_default=True
        )
        with _REMEMBERING:
            if id(model.model) not in _MEMORIES:
                _MEMORIES[id(model.model)] = {}, {}
                weakref.finalize(model.model, _MEMORIES.pop, id(model.model), None)
            self._texts, self._questions = _MEMORIES[id(model.model)]

    def select(
        self, given: Sequence[Any], turn: Turn, config: Any = None
    ) -> Flow[tuple[list[Any], Callable[[], dict[str, Any]]]]:
        """The tools for a turn of the agent, in the order in which they were given, and what makes the event.

        Those that it has called stay, as do ``always_include``, those that the system message names, and the
        provider's own.
        """
        asked = [text for text in map(_shorten, turn.asked) if text]
        read = [self.kind.read(original) for original in given]
        tools = {tool.id: tool for tool in read if tool is not None}
        missing = [name for name in self.always if name not in tools]
        if missing and is_first(self, "_warned_of_missing"):
            names = quoted([*tools])
            warn(f"always_include names {quoted(missing[0])}, which no tool is called; the tools are {names}")
        every = [*tools.values()]
        selected, reason, error = ItemSelection.nothing(queries=asked), None, None
        if not every or len(every) - len(tools.keys() & {*self.always}) <= self.request.all_of:
            reason = "there are no more than can be selected"
        elif not asked:
            reason = "no message has text"
        else:
            try:
                selected = yield from self._select(every, asked, config)
            # An embedding model may raise anything, and an agent without its tools is worse than one with all of them.
            except Exception as failure:
                error = f"{type(failure).__name__}: {failure}"
                reason = "the selection failed"
                LOGGER.warning("the selection of tools failed; the agent gets all tools", exc_info=True)
                if is_first(self, "_warned_of_failure"):
                    warn(
                        f"the selection of tools failed ({error}), so the agent gets all tools. Later failures are in "
                        "the log 'setselect' and in the event only"
                    )
        named = tools.keys() & {*re.findall(r"[\w-]+", turn.system)}
        kept = {*tools} if reason else {*selected.ids, *self.always, *turn.called, *named}
        returned = [
            original
            for original, tool in zip(given, read, strict=True)
            if tool is None or (tool.id in kept and tools[tool.id] is tool)
        ]

        def make_event() -> dict[str, Any]:
            return {
                "k": self.request.k,
                "vector_source": self.model.source,
                **describe(self.request, selected),
                "error": error,
                "tools": [tool.id for tool in map(self.kind.read, returned) if tool is not None],
                "called": sorted(tools.keys() & {*turn.called}),
                "all_because": reason,
                "tokens": sum(map(self.kind.count_tokens, returned)),
                "tokens_of_all": sum(map(self.kind.count_tokens, given)),
            }

        return returned, make_event

    def _select(self, tools: Sequence[Tool], asked: Sequence[str], config: Any) -> Flow[ItemSelection]:
        started = time.perf_counter()
        texts = [tool.text for tool in tools]
        stored = yield from _look_up(self._texts, self.model.model, MOST_TEXTS, texts, self.model.embed_texts)
        vectors = as_unit_rows(stack_vectors(stored, [tool.id for tool in tools]))
        settings = self.request.settings
        if settings.queries is None and self.request.capabilities.sub_questions:
            sub_questions = yield from self._find_sub_questions(asked, vectors)
            settings = settings.model_copy(update={"queries": sub_questions})
        queries = yield from embed_question(settings, asked[0], self._embed_questions, config)
        rows = self._find_candidates(tools, vectors, queries)
        items, text_of = [tools[row] for row in rows], attrgetter("text")
        pool = Pool(items, [tool.id for tool in items], text_of, text_of, vectors[rows])
        selected: ItemSelection = yield Step(partial(self.request.select, pool, queries))
        return selected._replace(milliseconds=1000 * (time.perf_counter() - started))

    def _embed_questions(self, texts: list[str]) -> Flow[list[Vector]]:
        model = self.model
        vectors = yield from _look_up(self._questions, model.model, MOST_QUESTIONS, texts, model.embed_questions)
        return [np.asarray(vector, np.float64) for vector in vectors]

    def _find_sub_questions(self, asked: Sequence[str], tools: NDArray[Any]) -> Flow[tuple[str, ...]]:
        """The clauses of the request, and those of the other texts that are near to a tool."""
        request, *others = asked
        clauses = split_clauses(request)
        further = [clause for text in reversed(others) for clause in split_clauses(text) or [text]][:MOST_FURTHER]
        if not further:
            return tuple(clauses)
        own = [request, *clauses]
        vectors = yield from self._embed_questions([*own, *further])
        nearest = (as_unit_rows(vectors) @ tools.T).max(axis=1)
        least = LEAST_SHARE * nearest[: len(own)].min()
        return (*clauses, *(text for text, share in zip(further, nearest[len(own) :], strict=True) if share >= least))

    def _find_candidates(
        self, tools: Sequence[Tool], vectors: NDArray[Any], queries: Sequence[EmbeddedQuery]
    ) -> list[int]:
        """The rows of the candidates: all, or the nearest ones, the best by words, and those that are always there."""
        most = max(MOST_CANDIDATES, 2 * (self.request.k or 0))
        if len(tools) <= most:
            return [*range(len(tools))]
        searched = as_unit_queries(np.array([query.search_vector for query in queries]), vectors.shape, vectors.dtype)
        cosines = (vectors @ searched.T).max(axis=1)
        words = match_split_words([query.words for query in queries], [read_text(tool.text) for tool in tools])
        by_words = words.covered @ words.weights
        best = np.argsort(-by_words, kind="stable")[:DEFAULT_EXTRA_K]
        rows = {*np.argsort(-cosines, kind="stable")[:most].tolist(), *best[by_words[best] > 0].tolist()}
        rows |= {row for row, tool in enumerate(tools) if tool.id in self.always}
        return sorted(rows)


def read_turn(said: Iterable[tuple[bool, str]], called: Collection[str]) -> Turn:
    """What messages ask. ``said``: whether each is that of a human, and its text. ``called``: see :class:`Turn`.

    >>> read_turn([(True, "Please write an email to Ann"), (False, "Shall I send it?"), (True, "Yes")], ()).asked
    ['Please write an email to Ann', 'Shall I send it?', 'Yes']
    """
    texts = [(is_human, text) for is_human, text in said if text.strip()]
    humans = [row for row, (is_human, _) in enumerate(texts) if is_human]
    if not humans:
        return Turn([], called)
    request = first = humans[-1]
    if _is_short(texts[request][1]):
        earlier = reversed(humans[-1 - MOST_EARLIER : -1])
        request = next((row for row in earlier if not _is_short(texts[row][1])), request)
        first = min(request, max(first - MOST_EARLIER, 0))
    rows = [request, *(row for row in range(first, len(texts)) if row != request)]
    return Turn([texts[row][1] for row in rows], called)


def _is_short(text: str) -> bool:
    return len(split_words(text[:MOST_CHARACTERS])) < FEWEST_WORDS


def refuse_tool(value: Any, remedy: str) -> InvalidInputError:
    """The error for a value that is no tool."""
    return InvalidInputError(f"{quoted(value)} is no tool: {remedy}")


def check_tools(tools: Any) -> list[Any]:
    """The tools as a list."""
    if isinstance(tools, (str, Mapping)) or not isinstance(tools, Iterable):
        raise InvalidInputError(f"a list of tools is needed, got {quoted(tools)}")
    return list(tools)


def _shorten(text: str) -> str:
    """The beginning and the end of a long text: people put what they ask before or behind what they paste."""
    text = text.strip()
    half = MOST_CHARACTERS // 2
    return text if len(text) <= MOST_CHARACTERS else f"{text[:half]}\n{text[-half:]}"


def as_storable(value: Any) -> Any:
    """A value of metadata as one that every checkpointer can store: others become text, and missing ones None."""
    value = as_plain(value)
    if isinstance(value, Mapping):
        return {str(key): as_storable(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [as_storable(inner) for inner in value]
    if isinstance(value, str):
        return str(value)
    if is_missing(value):
        return None
    is_plain = type(value) in (bool, float, date, datetime) or (type(value) is int and abs(value) < 2**63)
    return value if is_plain else as_text(value)


class ParallelCalls:
    """Calls that may run at the same time, such as those of one message. They search one after another.

    ``names`` holds what each call returned, by the id of the call. A call that runs again replaces its names.
    """

    def __init__(self) -> None:
        self.names: dict[Hashable, list[str]] = {}
        # The message of the model that made the calls, where they are not known by it.
        self.message: Any = None
        self.alone = threading.Lock()
        # A lock of asyncio belongs to one event loop.
        self._locks: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = weakref.WeakKeyDictionary()

    @property
    def alone_async(self) -> asyncio.Lock:
        """The lock that a call holds while it runs in async code; ``alone`` is the one of sync code."""
        return self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())

    def names_of_others(self, call: Hashable) -> list[str]:
        """What the other calls returned."""
        return [name for other, names in self.names.items() if other != call for name in names]


def remember_steps() -> Callable[[Hashable], ParallelCalls]:
    """A function from the key of a step of an agent to its calls: the same object for each call of a recent step."""
    lock, calls = threading.Lock(), lru_cache(_STEPS)(lambda step: ParallelCalls())

    def calls_of(step: Hashable) -> ParallelCalls:
        with lock:
            return calls(step)

    return calls_of
