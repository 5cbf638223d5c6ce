"""The contracts of pyproject.toml: private modules are protected, and the extras that texts name exist."""

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PYPROJECT["project"]["optional-dependencies"]
PACKAGES = ("setselect", "shared_core", "langchain_setselect", "llamaindex_setselect")


def test_every_private_module_is_protected() -> None:
    contracts = PYPROJECT["tool"]["importlinter"]["contracts"]
    protected = {module for contract in contracts for module in contract.get("protected_modules", ())}
    private = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for package in PACKAGES
        for path in (ROOT / package).rglob("_[!_]*.py")
    }
    assert private == protected


def test_every_extra_that_messages_and_pages_name_exists() -> None:
    texts = [ROOT / "README.md", ROOT / "Makefile", ROOT / "pyproject.toml"]
    for folder in (*PACKAGES, "docs", "examples", "notebooks"):
        texts += [path for path in (ROOT / folder).rglob("*.*") if path.suffix in (".py", ".md", ".ipynb")]
    named = {
        (extra, path.relative_to(ROOT))
        for path in texts
        for extras in re.findall(
            r"""setselect\[([\w,-]+)\]|-e "\.\[([\w,-]+)\]""",
            path.read_text(encoding="utf-8"),
        )
        for extra in "".join(extras).split(",")
    }
    assert len(named) > 10
    assert {(extra, path) for extra, path in named if extra not in EXTRAS} == set()


def test_the_extra_all_is_all_other_extras() -> None:
    (whole,) = EXTRAS["all"]
    assert set(re.findall(r"[\w-]+", whole)) == {"setselect", *EXTRAS} - {"all"}


def test_every_parameter_in_the_reference_says_what_it_is() -> None:
    silent = []
    for path in (ROOT / "shared_core").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            documented = (isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node)) or ""
            for section in re.findall(r"^(?:Parameters|Attributes)\n-+\n(.*?)(?:\n\n|\Z)", documented, re.M | re.S):
                silent += [(path.name, name) for name in re.findall(r"^(\S.*)(?:\n(?=\S)|\Z)", section, re.M)]
    assert not silent
