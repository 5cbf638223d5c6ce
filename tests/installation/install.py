"""Build the wheel and the sdist, check them, and use the wheel in a clean environment for each extra.

``make test-install`` runs it; its variables ``PYTHONS`` and ``EXTRAS`` choose less. It prints sizes and import times.
With ``PAGES`` it runs the programs of pages instead, each page in an environment with what the page installs. A number
stands for so many pages, others every day.
"""

import argparse
import datetime
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
USES = Path(__file__).with_name("uses.py")
# Each extra alone, with the first Python; "bare" is the install without an extra.
LIGHT = ("bare", "langchain", "llamaindex", "faiss", "openai", "kernel", "fast", "words", "eval", "batch", "ray")
# These bring PyTorch.
HEAVY = ("huggingface", "compare", "train", "all")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INSTALL = re.compile(r"pip install ([^#`\n]+)")
# With the other Pythons: bare, and these extras in one environment.
TOGETHER = "langchain,llamaindex,faiss,openai,kernel,fast,words,batch"
# What a user of the extra imports first; else `import setselect`.
IMPORTS = {"langchain": "langchain_setselect", "llamaindex": "llamaindex_setselect"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pythons", nargs="+", default=["3.11", "3.12", "3.13"], help="versions to install into")
    parser.add_argument("--extras", nargs="*", help="extras to install, or bare; by default all")
    parser.add_argument("--pages", nargs="*", help="pages whose programs are run, or their number")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wheel = build(Path(folder))
        if asked.pages:
            try_pages(wheel, asked.pages)
            return
        print("| Python | extra | packages | MB | import, CPU s |\n| --- | --- | ---: | ---: | ---: |", flush=True)
        pythons = {version: find_python(version) for version in asked.pythons}
        for version, python in pythons.items():
            if python is None:
                print(f"| {version} | not tested: there is no such interpreter | | | |", flush=True)
                continue
            first = python == next(found for found in pythons.values() if found)
            for extra in asked.extras or ([*LIGHT, *HEAVY] if first else ["bare", TOGETHER]):
                with tempfile.TemporaryDirectory() as environment:
                    print(
                        f"| {version} | {extra} | {try_install(wheel, python, extra, Path(environment))} |", flush=True
                    )


def run(*command: object) -> str:
    """The command's output; if it fails, its messages end the run."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=tempfile.gettempdir())
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def build(folder: Path) -> Path:
    """The wheel, made from the sdist in an isolated environment; twine and check-wheel-contents have checked both."""
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist)
    run(Path(sys.executable).with_name("check-wheel-contents"), "--config", ROOT / "pyproject.toml", wheel)
    for file in (wheel, sdist):
        print(f"{file.name}: {file.stat().st_size / 1e3:.0f} kB; checked")
    return wheel


def find_python(version: str) -> str | None:
    """An interpreter of this version: on PATH, or of pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    for path in (shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python"))):
        # A shim of pyenv is on PATH also for versions that are switched off.
        if path and subprocess.run([path, "-c", ""], capture_output=True).returncode == 0:
            return str(path)
    return None


def try_install(wheel: Path, python: str, extra: str, environment: Path) -> str:
    """Install the wheel with the extra, use it, and say what the environment holds."""
    run(python, "-m", "venv", environment)
    inside = environment / "bin" / "python"
    install = [inside, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    # The use of `eval` checks that the embedding model is missing.
    names = (
        extra.split(",")
        if extra != "all"
        else [name for name in (*LIGHT, *HEAVY) if name not in ("bare", "eval", "all")]
    )
    if set(names) & {*HEAVY}:
        # As in the Makefile: packages that ask for a newer PyTorch would bring gigabytes of GPU packages.
        run(*install, "torch==2.13.0")
        run(*install, "--no-deps", "--require-hashes", "-r", ROOT / "requirements-model.txt")
    run(*install, wheel if extra == "bare" else f"{wheel}[{extra}]")
    run(inside, "-m", "pip", "check")
    # Copied, so that nothing of the checkout can be imported.
    uses = shutil.copy(USES, environment)
    run(inside, uses, *names)
    module = IMPORTS.get(extra, "setselect")
    # Seconds of the processor, which depend little on what else the machine does.
    clock = f"import time; start = time.process_time(); import {module}; print(time.process_time() - start)"
    # The best of three; the first import of a package also compiles it.
    seconds = min(float(run(inside, "-c", clock)) for _ in range(3))
    packages = run(inside, "-m", "pip", "list", "--format", "freeze").splitlines()
    packages = [line for line in packages if line.split("==")[0] not in ("pip", "setuptools")]
    size = sum(file.stat().st_size for file in environment.rglob("*") if file.is_file() and "pip" not in file.parts)
    return f"{len(packages)} | {size / 1e6:.0f} | {seconds:.2f}"


def try_pages(wheel: Path, asked: list[str]) -> None:
    """Run the programs of these pages, each page with what it says that one installs."""
    programs = {page: PROGRAM.findall(page.read_text(encoding="utf-8")) for page in PAGES}
    pages = [page for page, found in programs.items() if found]
    if asked[0].isdigit():
        day = datetime.datetime.now(datetime.UTC).toordinal()
        pages = [pages[(day * int(asked[0]) + i) % len(pages)] for i in range(int(asked[0]))]
    else:
        pages = [ROOT / name for name in asked]
    for page in pages:
        program = "\n".join(programs[page])
        around = PROGRAM.sub("", page.read_text(encoding="utf-8"))
        lines = INSTALL.findall(around)[:1] + INSTALL.findall(program) or ["setselect"]
        packages = [name for line in lines for name in line.replace('-e ".', '"setselect').replace('"', "").split()]
        with tempfile.TemporaryDirectory() as environment:
            run(sys.executable, "-m", "venv", environment)
            inside = Path(environment, "bin", "python")
            install = [inside, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt"]
            if any(extra in line for line in lines for extra in HEAVY):
                run(*install, "torch==2.13.0")
                run(*install, "--no-deps", "--require-hashes", "-r", ROOT / "requirements-model.txt")
            run(*install, *(re.sub("^setselect", str(wheel), name) for name in packages))
            script = Path(environment, "page.py")
            script.write_text(program, encoding="utf-8")
            run(inside, script)
        print(f"{page.relative_to(ROOT)}: runs with {' '.join(packages)}", flush=True)


if __name__ == "__main__":
    main()
