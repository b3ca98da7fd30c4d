"""`python -m macros changes --base REF`: which published figures differ between a commit and the working tree.

Both sites are built, each by its own code with its own data, and what a reader sees on their pages is compared. So it
works for any commit that the installed packages can build. Exit codes: 0 no verdict flipped, 3 at least one did,
1 a site could not be built, 2 a wrong call.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from macros import changes_report, moved, published, yamlfile
from macros.findings import DataErrors
from macros.options import Parser

ROOT = Path(__file__).parent.parent
FLIPPED = 3
# What scripts write, and whose change no person typed: told by number only.
_RECORDED = ("data/simulation.yml", "data/peers.yml")
_BLOCKS = ("table", "bars", "dots", "checklist", "calculator")
_FIGURE = re.compile(r"\|\s*(gb|gib|number|percent|deviation|parameters|count|bytes|bytes_per_parameter|duration)\b")
_EXPRESSION = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
# What a build says of a sentence that is no longer true (vocabulary.claim): the page and its figures are whole.
_CLAIM = " the text here claims "
_HEADING = re.compile(r"^#{2,3} .*\{\s*#([\w-]+)\s*\}\s*$", re.MULTILINE)


class CannotBuild(Exception):
    """A site that its own code does not build, with the end of what it said."""


def commit_of(root: Path, ref: str) -> str:
    """The full name of a commit. Raises `ValueError` if Git does not know it."""
    # A name that begins with a hyphen would be an option.
    done = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    if done.returncode:
        raise ValueError(f"Git knows no commit {ref!r} here")
    return done.stdout.decode().strip()


def _git(root: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=False)


def unpack(root: Path, commit: str, folder: Path) -> None:
    """The files of a commit in a folder, without a work tree that Git would remember."""
    # A ZIP file, since Python unpacks TAR files safely only from 3.11.4 on, and Debian 12 has 3.11.2.
    archive = folder.with_suffix(".zip")
    done = _git(root, "archive", "--format=zip", f"--output={archive}", commit)
    if done.returncode:
        raise CannotBuild(done.stderr.decode(errors="replace"))
    with zipfile.ZipFile(archive) as files:
        files.extractall(folder)


def build(trees: Sequence[tuple[Path, Path]]) -> dict[Path, list[str]]:
    """Build sites side by side; the sentences of each that are no longer true. Raises `CannotBuild` for the first that fails."""
    engine = ROOT / "overrides" / "engine.py"
    running = [
        (tree, subprocess.Popen([sys.executable, str(engine), str(tree), str(site)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE))
        for tree, site in trees
    ]
    ends = [(tree, process.communicate()[1].decode(errors="replace"), process.returncode) for tree, process in running]
    untrue = {}
    for tree, said, code in ends:
        mistakes = [line.partition("-  ")[2] for line in said.splitlines() if line.startswith("WARNING")]
        untrue[tree] = [mistake for mistake in mistakes if _CLAIM in mistake]
        if code and (not mistakes or mistakes != untrue[tree]):
            raise CannotBuild(f"the site of {tree} cannot be built:\n" + "\n".join(said.splitlines()[-12:]))
    return untrue


def report(root: Path, ref: str, site: Path | None = None) -> dict[str, Any]:
    """Everything that differs between a commit and the working tree, as plain data; `site` is the latter, if built already."""
    commit = commit_of(root, ref)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        unpack(root, commit, folder / "tree")
        built = site or folder / "new"
        untrue = build([(folder / "tree", folder / "old"), *([] if site else [(root, built)])])
        difference = moved.compare(published.read(folder / "old"), published.read(built))
        data = list(data_changes(folder / "tree", root))
        code = list(code_changes(folder / "tree", root))
    for change in difference.moved:
        change.call = call_of(root, change)
    visible = [change for change in difference.moved if change.visible and not change.verdict]
    records = [change for change in data if change["path"] == []]
    return {
        "version": 1,
        "base": commit,
        "claims": untrue.get(root, []),
        "flips": [change.as_json() for change in difference.moved if change.verdict],
        "figures": [change.as_json() for change in visible],
        "below_print": sum(not change.visible for change in difference.moved),
        "came": [count.as_json() for count in difference.came],
        "went": [count.as_json() for count in difference.went],
        "pages": {"added": difference.pages_came, "removed": difference.pages_went, "text_only": difference.text_only},
        "records": records,
        "data": [change for change in data if change not in records],
        "code": code,
    }


def data_changes(old: Path, new: Path) -> Iterator[dict[str, Any]]:
    """Fields of data files that changed; a whole record that came or went has the empty path."""
    names = {file.name for root in (old, new) for file in (root / "data").glob("*.yml")}
    for name in sorted(names):
        path = f"data/{name}"
        before, after = _document(old, path), _document(new, path)
        if path in _RECORDED:
            number = sum(1 for _ in _fields(before, after, ()))
            if number:
                yield {"file": path, "record": "", "path": ["…"], "old": f"{number} values", "new": "recorded anew"}
            continue
        for key in dict.fromkeys([*after, *before]):
            if key not in before or key not in after:
                yield {"file": path, "record": key, "path": [], "old": key in before, "new": key in after}
                continue
            for place, one, other in _fields(before[key], after[key], ()):
                yield {"file": path, "record": key, "path": list(place) or ["value"], "old": one, "new": other}


def _document(root: Path, path: str) -> dict[str, Any]:
    """A data file as mappings; empty where it is missing or cannot be read, which the check reports."""
    try:
        value = yamlfile.read(root / path, path).value if (root / path).exists() else {}
    except DataErrors:
        return {}
    return value if isinstance(value, dict) else {str(number): part for number, part in enumerate(value or [])}


def _fields(old: Any, new: Any, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str, str]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            yield from _fields(old.get(key), new.get(key), (*place, str(key)))
    elif old != new:
        yield place, _short(old), _short(new)


def _short(value: Any) -> str:
    text = "nothing" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:79] + "…"


def code_changes(old: Path, new: Path) -> Iterator[dict[str, Any]]:
    """Files of the estimator that differ, with the functions, classes and constants in them that do."""
    folder = "macros/estimator"
    names = {file.name for root in (old, new) for file in (root / folder).glob("*.py")}
    for name in sorted(names):
        before, after = (_definitions(root / folder / name) for root in (old, new))
        changed = [part for part in dict.fromkeys([*after, *before]) if before.get(part) != after.get(part)]
        if changed:
            values = {part: [_short(before.get(part)), _short(after.get(part))] for part in changed if part.isupper()}
            yield {"file": f"{folder}/{name}", "names": changed, "values": values}


def _definitions(file: Path) -> dict[str, str]:
    """What a file defines at its top level, by name, without comments and docstrings."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8")) if file.exists() else ast.Module([], [])
    except SyntaxError:
        return {"(not Python)": file.read_text(encoding="utf-8")}
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            if isinstance(body[0].value.value, str) and len(body) > 1:
                del body[0]
    found = {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = ast.unparse(node)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                found[ast.unparse(target)] = ast.unparse(node.value)
    return found


def call_of(root: Path, change: moved.Moved) -> str:
    """The call in the article that shows a figure; empty where the page does not tell which of several it is."""
    language = next(iter(change.texts))
    name = change.page.rstrip("/") or "index"
    files = [root / "docs" / language / f"{name}.md", root / "docs" / language / name / "index.md"]
    files += [root / "docs" / language / "blog" / "posts" / f"{name.removeprefix('blog/')}.md"]
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        return ""
    text = file.read_text(encoding="utf-8")
    marks = [(found.start(), found[1]) for found in _HEADING.finditer(text)]
    start = next((at for at, anchor in marks if anchor == change.section), 0)
    end = next((at for at, _ in marks if at > start), len(text))
    calls = [" ".join(found[1].split()) for found in _EXPRESSION.finditer(text, start, end)]
    blocks = [call for call in calls if call.partition("(")[0] in _BLOCKS]
    if change.block:
        return blocks[change.block - 1] if change.block <= len(blocks) else ""
    figures = [call for call in calls if _FIGURE.search(call) or call.partition("(")[0] in ("headline", "units_note")]
    wanted = [call for call in figures if call not in blocks]
    return wanted[0] if len(wanted) == 1 else ""


def main(arguments: Sequence[str]) -> int:
    """The command. Returns the exit code."""
    parser = Parser(prog="python -m macros changes", description=__doc__)
    parser.add_argument("--base", required=True, metavar="REF", help="the commit to compare with, such as main")
    parser.add_argument("--site", type=Path, help="the working tree's site, if it is built already")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report as JSON")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write it as Markdown for a comment")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write it as a page of HTML")
    options = parser.parse_args(arguments)
    try:
        found = report(ROOT, options.base, options.site)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except CannotBuild as error:
        print(error, file=sys.stderr)
        return 1
    text = changes_report.markdown(found)
    files = {
        options.json: json.dumps(found, ensure_ascii=False, indent=1) + "\n",
        options.markdown: text,
        options.page: changes_report.page(found),
    }
    for file, content in files.items():
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, encoding="utf-8")
    print(text)
    return FLIPPED if found["flips"] else 0
