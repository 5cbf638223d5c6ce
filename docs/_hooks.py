"""What mkdocs cannot do alone: links that leave docs/, roles and doctests in docstrings, help of commands, llms.txt."""

import logging
import posixpath
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
# Pages that GitHub expects at the top of the repository.
AT_THE_TOP = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}
HELP = "<!-- the help of all commands -->"
# What only the pages of the repository say.
REPOSITORY = re.compile(r"^.* <!--repository-->\n", re.MULTILINE)

FENCED = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r'(\]\(|\b(?:src|href)=")([^)"\s]+)')
PICTURE = re.compile(r'<picture>\s*<source[^>]* srcset="([^"]+)">\s*<img src="([^"]+)" alt="([^"]+)">\s*</picture>')
ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):`~?([\w.]+)`")
DOCTEST = re.compile(r"^(>>> .*(?:\n.+)*)", re.MULTILINE)
log = logging.getLogger("mkdocs.hooks")
nav_of_the_build: list[Navigation] = []


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie outside docs/."""
    for source, page in AT_THE_TOP.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    return files


def on_nav(nav: Navigation, **_: Any) -> None:
    """Keep the order of the pages for llms.txt."""
    nav_of_the_build[:] = [nav]


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill in the help of the commands. Lead each link to a page of the site or to the repository."""
    markdown = REPOSITORY.sub("", markdown.replace(HELP, _help()) if HELP in markdown else markdown)
    here = page.file.src_uri
    source = next((top for top, name in AT_THE_TOP.items() if name == here), f"docs/{here}")

    def lead(match: re.Match[str]) -> str:
        before, link = match.groups()
        path, mark, anchor = link.partition("#")
        if not path or ":" in link:
            return match[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if not (ROOT / target).exists():
            log.warning(f"{source} links to {link}, and there is no file {target}")
        if target.startswith("docs/"):
            place = target.removeprefix("docs/")
        elif target in AT_THE_TOP:
            place = AT_THE_TOP[target]
        elif target.endswith((".png", ".svg")):
            place = f"assets/{target.replace('/', '-')}"
            if place not in files.src_uris:
                files.append(File.generated(config, place, abs_src_path=str(ROOT / target)))
        else:
            kind = "tree" if (ROOT / target).is_dir() else "blob"
            return f"{before}{config.repo_url}/{kind}/main/{target}{mark}{anchor}"
        return before + posixpath.relpath(place, posixpath.dirname(here) or ".") + mark + anchor

    # GitHub shows the picture for the system's colours, and the theme that for the colours which its reader chose.
    markdown = PICTURE.sub(r"![\3](\2#only-light)\n![\3](\1#only-dark)", markdown)
    parts = FENCED.split(markdown)
    parts[::2] = [LINK.sub(lead, part) for part in parts[::2]]
    return "".join(parts)


def on_post_page(output: str, **_: Any) -> str:
    """Keep the theme from asking GitHub for the number of stars: reading the site needs no other server."""
    return output.replace(' data-md-component="source"', "")


def on_post_build(config: MkDocsConfig) -> None:
    """Write each page's Markdown beside it, and llms.txt (llmstxt.org), which lists them."""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}"]
    section = ""
    for page in nav_of_the_build[0].pages:
        Path(config.site_dir, page.file.src_uri).write_text(page.markdown or "", encoding="utf-8")
        title = page.ancestors[-1].title if page.ancestors else page.title
        if title != section:
            section = title
            lines += ["", f"## {section}", ""]
        # The reference is made of docstrings, which only the HTML has.
        place = page.file.dest_uri if page.file.src_uri.startswith("api/") else page.file.src_uri
        lines.append(f"- [{page.title}]({config.site_url}{place})")
    Path(config.site_dir, "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _help() -> str:
    """The help of all commands as Markdown, written by typer."""
    command = [sys.executable, "-m", "typer", "shared_core.cli._program", "utils", "docs", "--name", "setselect"]
    text = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, encoding="utf-8").stdout.replace("\b", "")
    text = text.replace("# `setselect`\n", "## `setselect`\n", 1)
    return re.sub(r"^Exit codes:\n((?: .*\n)+)", r"**Exit codes**:\n\n```text\n\1```\n", text, flags=re.MULTILINE)


class Docstrings(griffe.Extension):
    """Turns the roles of docstrings, such as :class:`NDPP`, into links, and doctests into code."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Go through the docstrings once all names of the package are known."""
        self._convert(pkg)

    def _convert(self, thing: griffe.Object) -> None:
        if thing.docstring:
            text = ROLE.sub(lambda match: _link(match[1], thing), thing.docstring.value)
            # griffe reads the type "array-like" as a difference, unless its hyphen is another character.
            text = text.replace("array-like", "array\N{NON-BREAKING HYPHEN}like")
            # griffe shows doctests as code in the section "Examples" only.
            prose, *examples = re.split(r"^(Examples\n-+\n)", text, maxsplit=1, flags=re.MULTILINE)
            thing.docstring.value = "".join([DOCTEST.sub(r"```pycon\n\1\n```", prose), *examples])
            _mend_types(thing)
        for member in thing.members.values():
            if isinstance(member, griffe.Object):
                self._convert(member)


def _mend_types(thing: griffe.Object) -> None:
    signature = {parameter.name: parameter for parameter in getattr(thing, "parameters", ())}
    for section in thing.docstring.parsed if thing.docstring else ():
        for entry in section.value if isinstance(section.value, list) else ():
            own = signature.get(getattr(entry, "name", None))
            if section.kind is griffe.DocstringSectionKind.parameters and own:
                # For a line such as "quality, costs", griffe gives all names the type and the default of the first.
                if any(entry.annotation is other.annotation for other in signature.values()):
                    entry.annotation = own.annotation
                entry.value = None if own.default is None else str(own.default)
            if isinstance(getattr(entry, "annotation", None), griffe.ExprTuple):
                entry.annotation.implicit = True  # "str or None, callable" without parentheses


def _link(name: str, scope: griffe.Object) -> str:
    first, dot, rest = name.partition(".")
    try:
        path = scope.resolve(first) + dot + rest
    except griffe.NameResolutionError:
        path = name
    return f'<autoref identifier="{path}" optional><code>{name}</code></autoref>'
