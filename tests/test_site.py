"""The documentation site, as far as it can be checked without mkdocs; `make docs` builds it and checks all links."""

import ast
import re
from pathlib import Path

import shared_core

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def public_names() -> dict[str, list[str]]:
    """The public names (CONTRIBUTING.md) of each module that declares ``__all__``."""
    found = {}
    for package in ("shared_core", "langchain_setselect", "llamaindex_setselect"):
        for path in (ROOT / package).rglob("__init__.py"):
            for statement in ast.parse(path.read_text(encoding="utf-8")).body:
                match statement:
                    case ast.Assign(targets=[ast.Name(id="__all__")]):
                        found[".".join(path.relative_to(ROOT).parent.parts)] = ast.literal_eval(statement.value)
    return found


def test_every_public_name_is_in_the_reference() -> None:
    public = public_names()
    assert len(public) >= 8
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


def test_every_page_is_in_the_navigation() -> None:
    pages = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:")[1]
    named = re.findall(r"[\w/-]+\.md$", nav, re.MULTILINE)
    assert sorted(named) == sorted([*pages, "changelog.md", "contributing.md", "security.md"])
