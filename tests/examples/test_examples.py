"""Every script in examples/ runs as it stands: offline, with the expected output, and without noise on stderr."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RUNNER = Path(__file__).with_name("run_scripts.py")
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("[!_]*.py"))

# What each script must print: its picks and figures. A script that is missing here fails.
SAYS = {
    "agent_tool.py": [
        "create_retriever_tool: 5 calls, 20 documents, 11 of them different",
        "create_setselect_tool: 5 calls, 20 documents, 20 of them different",
        "89 tools, of which the model got 6: numpy_linalg_lstsq, numpy_linalg_solve,",
        "numpy_strings_strip",
    ],
    "answer_langchain.py": ["ndpp:       map, faq, tram, ticket\n  Answer:   open: 10 to 18; entry: 12 euros"],
    "answer_llamaindex.py": ["ndpp:       cars, app, storm, crossing\n  Answer:   50 minutes; car: 18 euros"],
    "chat_without_repeats.py": ["12 documents in 3 turns, 12 of them different"],
    "compressor.py": [
        "First found: numpy.savetxt, numpy.fromfile",
        "numpy.loadtxt            relevance 0.487 (",
        "words: load (",
    ],
    "crowded_sources.py": [
        "No constraint:        manual-2, leaflet-1, manual-1, manual-3",
        "One of each source:   manual-2, leaflet-1, forum-1, shop-1",
        "No near-duplicates:   manual-2, manual-3, manual-5, manual-4",
        "Both:                 manual-2, forum-1, shop-1, test-1",
    ],
    "demo.py": ["15 of 15 sets", "flip: relevance 0.547 (", "words: flip ("],
    "few_shot_prompt.py": [
        "signed up last week bought something, per country?\nSQL:",
        " of 75 tokens",
    ],
    "hybrid_search.py": [
        "No selection:      numpy.ma.convolve, numpy.pad, numpy.fft.rfft2, numpy.zeros, numpy.ma.zeros",
        "MMR by the scores: numpy.ma.convolve, numpy.zeros, numpy.fft.rfft2, numpy.pad,",
    ],
    "index_with_quality.py": [
        "lambda_b = 1.0\n  0.90   1 votes  The printer prints blank pages for me as well.",
        "lambda_b = 0.7\n  0.81  48 votes  Blank pages: take out the cartridge",
        "MMR with quality, out of 6:\n        48 votes  Blank pages: take out the cartridge",
    ],
    "langchain_chain.py": ["vrsd:       damage, refund-help, label", "coverage:   damage, "],
    "learned_examples.py": ["learned (epoch ", "ndpp, learned  covers 0.9"],
    "llamaindex_chat_engine.py": ["One node of each document\n  How do I descale the coffee machine?      manual-1"],
    "llamaindex_few_shot.py": [
        "signed up last week bought something, per country?\nSQL:",
        " of 75 tokens",
    ],
    "llamaindex_query_engine.py": ["numpy.random.binomial        relevance 0.436 (", "words: draw ("],
    "more_evidence.py": [
        "200 questions, 1971 passages",
        "store.as_retriever     6",
        "SetSelectRetriever     8",
        "=0   7",
    ],
    "own_arrays.py": ["2 nearest:     [0, 0]", "2 selected:    [0, 1]", "words select:    [0, 2]"],
    "perspective_langchain.py": [
        "Unchanged:   toll-air, toll-taxes, deb",
        "Removed:     toll-air, toll-taxes, toll-n",
    ],
    "perspective_llamaindex.py": [
        "Emphasized:  norway-whales, norway-salmon,",
        "Removed:     world-catch, maine-",
    ],
    "quality_from_a_model.py": ["MMR without quality: 0 of 3", "MMR with quality: 3 of 3"],
    "token_budget.py": ["of 250 tokens", "numpy.loadtxt"],
    "tracing_langsmith.py": ["SetSelectRetriever\n    3 of 50 candidates, vectors from store: FAISS\n    numpy.from"],
    "tracing_otel_langchain.py": ["setselect.ids = ('numpy.fromfile', 'numpy.loadtxt', "],
    "tracing_otel_llamaindex.py": ["event ReRankEndEvent\n  selector = Coverage(", "numpy.loadtxt"],
}


def group_of(script: str) -> str:
    """The group whose scripts share a process: importing a framework takes longer than running its examples."""
    source = (EXAMPLES / script).read_text(encoding="utf-8")
    if "SETSELECT_DATA" in source or "_hotpotqa" in source:
        return "data set"
    if "_gemma" in source:
        return "Gemma"
    if "_tiny_lm" in source:
        return "language model"
    return "LlamaIndex" if "llamaindex_setselect" in source else "LangChain"


SLOW = ("data set", "Gemma", "language model")
GROUPS = {name: [s for s in SCRIPTS if group_of(s) == name] for name in ("LangChain", "LlamaIndex", *SLOW)}


def test_each_script_has_its_expectations() -> None:
    assert set(SCRIPTS) == set(SAYS)


@pytest.mark.parametrize("group", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in GROUPS])
def test_runs_offline_and_without_noise(group: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if group == "Gemma":
        request.getfixturevalue("gemma")
    folder, report = tmp_path / "work", tmp_path / "report.json"
    folder.mkdir()
    quiet = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "PYTHONWARNINGS"}}
    done = subprocess.run(
        [sys.executable, str(RUNNER), str(report), *(str(EXAMPLES / script) for script in GROUPS[group])],
        cwd=folder,
        env={**quiet, "HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    found = json.loads(report.read_text(encoding="utf-8"))
    assert list(found) == GROUPS[group]
    for script, result in found.items():
        assert (result["code"], result["err"]) == (0, ""), f"{script} exits with {result['code']}:\n{result['err']}"
        if not result["out"].startswith("skipped: "):
            for words in SAYS[script]:
                assert words in result["out"], f"{script} does not print {words!r} but\n{result['out']}"
    assert not list(folder.iterdir())
    skipped = [result["out"].strip() for result in found.values() if result["out"].startswith("skipped: ")]
    if skipped:
        pytest.skip("; ".join(skipped))
