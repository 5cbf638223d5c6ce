"""README.md as a package index renders it: outside a checkout, links and pictures must still lead somewhere."""

import re
import tomllib
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from readme_renderer.markdown import render

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
URLS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
REPOSITORY, SITE = URLS["Homepage"], URLS["Documentation"]
RAW = REPOSITORY.replace("github.com", "raw.githubusercontent.com") + "/main/"
# The renderer puts this before every anchor, as GitHub does.
ANCHOR = "user-content-"


class Rendered(HTMLParser):
    """A page's links and pictures (address and description), its anchors, and its text without the code."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.pictures: dict[str, str] = {}
        self.anchors: set[str] = set()
        html = render(page.read_text(encoding="utf-8"))
        assert html, f"{page.name} is not rendered"
        self.feed(html)
        self.prose = re.sub(r"<(pre|code)\b.*?</\1>|<[^>]+>", "", html, flags=re.DOTALL)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors.add(found.get("id", ""))
        if tag == "a":
            self.links.append(found.get("href", ""))
        if tag == "img":
            self.pictures[found.get("src", "")] = found.get("alt", "")


rendered = cache(Rendered)


def file(target: str) -> Path | None:
    """The file or folder of the project behind an address; None if the address is not the project's."""
    if found := re.fullmatch(rf"(?:{re.escape(RAW)}|{re.escape(REPOSITORY)}/(?:blob|tree)/main/)(.+)", target):
        return ROOT / found[1]
    if target.startswith(SITE):
        return (ROOT / "docs" / (target.removeprefix(SITE).strip("/") or "index")).with_suffix(".md")
    return None


def fault(address: str) -> str:
    """What is wrong with an address on the rendered README; empty if nothing is."""
    target, _, anchor = address.partition("#")
    if not target:
        return "" if anchor in rendered(README).anchors - {""} else "no heading for this anchor"
    if not target.startswith("https://"):
        return "neither https nor an anchor"
    page = file(target)
    if page and not page.exists():
        return f"{page.relative_to(ROOT)} does not exist"
    if page and anchor and page.suffix == ".md" and ANCHOR + unquote(anchor) not in rendered(page).anchors:
        return f"{page.relative_to(ROOT)} has no heading for this anchor"
    return ""


def test_every_link_leads_somewhere() -> None:
    links = rendered(README).links
    assert len(links) > 15
    assert {link: wrong for link in links if (wrong := fault(link))} == {}
    # Where a link names an address that the page does not have, the brackets stay.
    assert re.findall(r"\[.*", rendered(README).prose) == []


def test_every_picture_is_there_and_described() -> None:
    pictures = rendered(README).pictures
    # A package index drops <source>, which GitHub uses for the dark pictures.
    dark = re.findall(r'<source [^>]*srcset="([^"]+)"', README.read_text(encoding="utf-8"))
    own = [address for address in (*pictures, *dark) if not address.startswith("https://img.shields.io/")]
    assert own
    assert all(address.startswith(RAW) for address in own), own
    assert {address: wrong for address in own if (wrong := fault(address))} == {}
    assert all(pictures.values()), pictures


def test_newcomers_read_one_and_a_half_screens() -> None:
    # The bars of tables are no words.
    assert len(README.read_text(encoding="utf-8").replace("|", " ").split()) <= 750


def test_the_program_prints_what_stands_below_it(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    exec(program, {})
    shown = [line.removeprefix("# ") for line in program.splitlines() if line.startswith("# ")]
    assert shown
    assert capsys.readouterr().out.splitlines() == shown
