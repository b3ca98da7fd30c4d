"""Code and commands on pages: each parses, trainers know the arguments, and what is ours exists and runs."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from macros import __main__, measure, pages, yamlfile
from macros.language import CODES

ROOT = Path(__file__).parent.parent
# Written by tests/record_defaults.py from the installed libraries; it leaves out the folder to write to.
ARGUMENTS = json.loads((ROOT / "tests" / "recorded" / "defaults.json").read_text(encoding="utf-8"))["defaults"]
SHELL = ("bash", "sh")


def blocks(*languages: str) -> list[tuple[str, str]]:
    """Path and text of each code block of all pages in one of these languages, the fence's indentation taken away."""
    found = []
    for code in CODES:
        for path in sorted((ROOT / "docs" / code).rglob("*.md")):
            name = path.relative_to(ROOT).as_posix()
            for piece in pages.parse(path.read_bytes(), name).code_blocks:
                info, _, text = piece.text.partition("\n")
                if info.strip() in languages:
                    found.append((f"{name}:{piece.line}", text))
    return found


def commands(text: str) -> Iterator[list[str]]:
    """The commands of a shell block as words; a line that ends in a backslash goes on."""
    for line in text.replace("\\\n", " ").splitlines():
        if words := shlex.split(line, comments=True):
            yield words


def test_python_parses_and_libraries_know_the_arguments() -> None:
    unknown = []
    found = blocks("python")
    for place, text in found:
        for node in ast.walk(ast.parse(text, place)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ARGUMENTS:
                known = {*ARGUMENTS[node.func.id], "output_dir"}
                unknown += [(place, node.func.id, word.arg) for word in node.keywords if word.arg not in known]
    assert unknown == []
    assert len(found) >= 3 * 12


def test_shell_parses() -> None:
    found = blocks(*SHELL)
    for place, text in found:
        done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (place, done.stderr)
    assert len(found) >= 3 * 8


@pytest.mark.parametrize("language", ["yaml", "json"])
def test_data_parses(language: str) -> None:
    for place, text in blocks(language):
        if language == "json":
            json.loads(text)
        else:
            assert isinstance(yamlfile.parse(text, place).value, dict)


def test_our_own_commands_exist_and_run(tmp_path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    measured = 0
    for place, text in blocks(*SHELL):
        for words in commands(text):
            if words[0] == "make":
                assert words[1] in targets, place
            if words[1:3] == ["-m", "macros"]:
                assert words[3] in {"estimate", "capacity", *__main__.COMMANDS}, place
                if words[3] == "measure":
                    arguments = [*words[4:], "--output", str(tmp_path / f"{measured}.py")]
                    assert measure.main(arguments) == 0, place
                    measured += 1
    assert measured >= 3
