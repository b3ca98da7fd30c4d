"""Changing a data file by hand-like edits: check the new text as part of the whole, then replace the file at once."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from macros.dataset import Dataset, load
from macros.findings import DataErrors, Finding


def load_with(root: Path, path: str, text: str, shown: str) -> Dataset:
    """The dataset below `root` with this text as its file `path`; findings in it name the file `shown`."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(root / "data", Path(folder) / "data")
        (Path(folder) / path).write_text(text, encoding="utf-8")
        try:
            return load(Path(folder))
        except DataErrors as errors:
            raise DataErrors(
                Finding(shown if found.path == path else found.path, found.line, found.message, found.warning)
                for found in errors.findings
            ) from None


def replace(path: Path, text: str) -> None:
    """Write a file as a whole or not at all."""
    new = path.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    os.replace(new, path)


def start_of(lines: list[str], line: int) -> int:
    """Index of a record's first line: its key in line `line`, or the comment right above, unless that heads the file."""
    start = line - 1
    while start > 0 and lines[start - 1].startswith("#"):
        start -= 1
    return start if start > 0 else line - 1
