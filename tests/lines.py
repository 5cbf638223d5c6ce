"""Print the size of each part of the project beside its limit in pyproject.toml; fail above a limit.

A part is a list of path patterns of git, in which ``*`` also stands for folders. Code counts in lines, text in words.
"""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def list_files(patterns: list[str]) -> list[Path]:
    """The files of the checkout, tracked or new, that match a pattern."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def measure(paths: list[str], unit: str) -> int:
    files = list_files(paths)
    if unit == "files":
        return len(files)
    texts = [file.read_text(encoding="utf-8") for file in files]
    return sum(len(text.replace("|", " ").split()) if unit == "words" else text.count("\n") for text in texts)


def main() -> None:
    too_large = False
    for part in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["size"]["parts"]:
        unit, most = part.get("unit", "lines"), part["most"]
        size = measure(part["paths"], unit)
        too_large |= size > most
        print(f"{part['name']:<24} {size:>7,} of {most:>7,} {unit}{'  too large' if size > most else ''}")
    sys.exit(too_large)


if __name__ == "__main__":
    main()
