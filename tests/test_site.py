"""The documentation site, as far as it can be checked without mkdocs; `make docs` builds it and checks all links."""

import ast
import inspect
import re
from pathlib import Path

from langchain_core.vectorstores import VectorStoreRetriever
from llama_index.core.indices.vector_store.retrievers import VectorIndexRetriever

import shared_core
from langchain_setselect import SetSelectRetriever
from llamaindex_setselect.retriever import RetrieverSettings

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
# Packages whose ``__all__`` is what the layers above import.
FOR_THE_CORE = ("shared_core.candidates", "shared_core.texts")


def public_names() -> dict[str, list[str]]:
    """The public names (CONTRIBUTING.md) of each module that declares ``__all__``, without those for the core alone."""
    found = {}
    for package in ("shared_core", "langchain_setselect", "llamaindex_setselect"):
        for path in (ROOT / package).rglob("__init__.py"):
            for statement in ast.parse(path.read_text(encoding="utf-8")).body:
                match statement:
                    case ast.Assign(targets=[ast.Name(id="__all__")]):
                        found[".".join(path.relative_to(ROOT).parent.parts)] = ast.literal_eval(statement.value)
    return {module: names for module, names in found.items() if module not in FOR_THE_CORE}


def test_every_public_name_is_in_the_reference() -> None:
    public = public_names()
    assert len(public) >= 6
    pages = [path.read_text(encoding="utf-8") for path in (DOCS / "api").glob("*.md")]
    documented = {name for page in pages for name in re.findall(r"^::: (\S+)$", page, re.MULTILINE)}
    # What shared_core exports is documented there, also if a package inside it exports it too.
    missing = [
        f"{module}.{name}"
        for module, names in public.items()
        for name in names
        if f"{'shared_core' if name in shared_core.__all__ else module}.{name}" not in documented
    ]
    assert missing == []


def test_every_setting_is_described_in_the_reference() -> None:
    fields = [*SetSelectRetriever.model_fields.items(), *RetrieverSettings.model_fields.items()]
    described = {name for name, field in fields if field.description} | VectorStoreRetriever.model_fields.keys()
    # What LlamaIndex's own retriever has too is explained there.
    of_llamaindex = {*inspect.signature(VectorIndexRetriever).parameters, "vector_store_kwargs"}
    assert described | of_llamaindex >= dict(fields).keys()


def test_every_page_is_in_the_navigation() -> None:
    pages = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:")[1]
    named = re.findall(r"[\w/-]+\.md$", nav, re.MULTILINE)
    assert sorted(named) == sorted([*pages, "changelog.md", "contributing.md", "security.md"])


def test_every_name_of_the_architecture_is_in_the_code() -> None:
    folders = ("shared_core", "langchain_setselect", "llamaindex_setselect", "tests", "benchmarks")
    paths = [path for folder in folders for path in (ROOT / folder, *(ROOT / folder).rglob("*"))]
    code = [path.read_text("utf-8") for path in paths if path.suffix == ".py" and "benchmarks" not in path.parts]
    page = re.sub("```.*?```", "", (DOCS / "architecture.md").read_text("utf-8"), flags=re.DOTALL)
    for name in {*re.findall(r"`([\w./]+)`", page)}:
        owner, _, last = name.rpartition(".")
        start = f"class {owner}" if owner[:1].isupper() else owner
        is_file = any(path.as_posix().endswith(f"/{name.rstrip('/')}") for path in (*paths, ROOT / "pyproject.toml"))
        assert is_file or any(start in text and re.search(rf"\b{last}\b", text) for text in code), name
