"""The import contracts of pyproject.toml cover every private module."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_every_private_module_is_protected() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    protected = {module for contract in contracts for module in contract.get("protected_modules", ())}
    private = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for package in ("shared_core", "langchain_setselect", "llamaindex_setselect")
        for path in (ROOT / package).rglob("_*.py")
        if path.name != "__init__.py"
    }
    assert private == protected
