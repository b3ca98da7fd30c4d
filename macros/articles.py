"""Which pages are one article, and which translations are current: `python -m macros articles`, `… articles stamp PATH`.

The same path under `docs/de`, `docs/en` and `docs/tr` is the same article. The version without a `translation`
block is its source; each other one names the source's language and the Git blob id of the text it was made from.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from macros import pages
from macros.findings import DataErrors, Finding
from macros.language import CODES
from macros.pages import Page

ROOT = Path(__file__).parent.parent
STAMP = "python -m macros articles stamp"

Versions = Mapping[str, Page]
"""Language → page of one article."""


def read_all(root: Path) -> tuple[dict[str, dict[str, Page]], list[Finding]]:
    """Every article by name, and what is wrong with pages that cannot be read."""
    found: dict[str, dict[str, Page]] = {}
    findings: list[Finding] = []
    for language in CODES:
        for file in sorted((root / "docs" / language).rglob("*.md")):
            path = file.relative_to(root).as_posix()
            try:
                page = pages.parse(file.read_bytes(), path)
            except DataErrors as errors:
                findings += errors.findings
                continue
            found.setdefault(page.name, {})[language] = page
    return dict(sorted(found.items())), findings


def source_of(versions: Versions) -> Page | None:
    """The version that the others are translated from: the first without a `translation` block."""
    return next((page for page in versions.values() if "translation" not in page.meta), None)


def state(versions: Versions, language: str) -> str:
    """`source`, `current`, `stale`, `missing` or `orphan` (a translation of nothing)."""
    page, source = versions.get(language), source_of(versions)
    if page is None:
        return "missing"
    if source is None:
        return "orphan"
    if page is source:
        return "source"
    translation = page.meta.get("translation")
    current = isinstance(translation, dict) and translation.get("blob") == source.blob
    return "current" if current else "stale"


def findings(versions: Versions) -> Iterator[Finding]:
    """What is wrong between the versions of one article; a stale translation is a warning."""
    source = source_of(versions)
    if source is None:
        for page in versions.values():
            line = page.front.line("translation")
            yield Finding(page.path, line, "is a translation of nothing: no version is without a translation block")
        return
    for language in CODES:
        if language not in versions and not source.is_draft:
            missing = f"docs/{language}/{source.name}"
            yield Finding(source.path, 1, f"has no translation {missing}; drafts may lack one (draft: true)")
    for page in versions.values():
        if page is not source:
            yield from _translation(page, source)


def _translation(page: Page, source: Page) -> Iterator[Finding]:
    """What is wrong with the `translation` block of one version."""
    line, block = page.front.line("translation"), page.meta.get("translation")
    if not isinstance(block, dict) or set(block) != {"from", "blob"}:
        given = "no translation block" if block is None else "a translation block without exactly from and blob"
        yield Finding(page.path, line, f"has {given}; write one: {STAMP} {page.path}")
    elif block["from"] != source.language:
        says = f"translation.from: expected {source.language!r}, the source's language, got {block['from']!r}"
        yield Finding(page.path, page.front.line("translation", "from"), says)
    elif not re.fullmatch("[0-9a-f]{40}", str(block["blob"])):
        says = f"translation.blob: expected a Git blob id; write it: {STAMP} {page.path}"
        yield Finding(page.path, page.front.line("translation", "blob"), says)
    elif block["blob"] != source.blob:
        says = f"{source.path} has changed; see git diff {block['blob'][:12]} HEAD:{source.path}, then {STAMP} {page.path}"
        yield Finding(page.path, page.front.line("translation", "blob"), says, warning=True)


def stamp(path: str, root: Path, language: str | None = None) -> str:
    """Record in a translation that it has been reviewed against its source as it is now; returns the blob id.

    `language` names the source where two versions could be it. Raises `ValueError` for a page that is no translation.
    """
    match = re.fullmatch(rf"docs/({'|'.join(CODES)})/(.+\.md)", path)
    if not match or not (root / path).is_file():
        raise ValueError(f"expected the path of a page like docs/en/index.md, got {path!r}")
    articles, _ = read_all(root)
    versions = articles.get(match[2], {})
    page = versions.get(match[1])
    if page is None:
        raise ValueError(f"{path}: its front matter cannot be read; python -m macros check says why")
    source = versions.get(language) if language else source_of(versions)
    if source is None:
        raise ValueError(f"{path} has no source: no other version is without a translation block")
    if source is page:
        raise ValueError(f"{path} is the source of its article; only translations are stamped (--from names another)")
    text = (root / path).read_bytes().decode("utf-8")
    (root / path).write_bytes(_stamped(text, source).encode("utf-8"))
    return source.blob


def _stamped(text: str, source: Page) -> str:
    """The text of a page with its `translation` block written anew, at its place or at the end of the front matter."""
    block = f"translation:\n  from: {source.language}\n  blob: {source.blob}\n"
    parts = re.fullmatch(r"(\ufeff?---[ \t]*\r?\n.*?)((?:---|\.\.\.)[ \t]*(?:\r?\n.*)?)", text, re.DOTALL)
    if parts is None:
        return f"---\n{block}---\n\n{text}"
    head, rest = parts.groups()
    old = re.compile(r"^translation:.*\n(?:[ \t]+.*\n)*", re.MULTILINE)
    head = old.sub(lambda _: block, head, count=1) if old.search(head) else head + block
    return head + rest


def main(arguments: Sequence[str]) -> int:
    """The command. Without arguments it lists the state of every article in every language."""
    parser = argparse.ArgumentParser(prog="python -m macros articles", description=__doc__)
    commands = parser.add_subparsers(dest="command")
    stamping = commands.add_parser("stamp", help="record that a translation has been reviewed against its source")
    stamping.add_argument("paths", nargs="+", metavar="PATH", help="a page like docs/en/index.md")
    stamping.add_argument("--from", dest="language", choices=CODES, help="the source's language, where two could be it")
    options = parser.parse_args(arguments)
    if options.command == "stamp":
        for path in options.paths:
            try:
                print(f"{path}: {stamp(path, ROOT, options.language)}")
            except ValueError as error:
                print(f"error: {error}", file=sys.stderr)
                return 2
        return 0
    articles, unreadable = read_all(ROOT)
    width = max((len(name) for name in articles), default=0)
    print(" ".join([" " * width, *(f"{language:8}" for language in CODES)]).rstrip())
    for name, versions in articles.items():
        print(" ".join([f"{name:{width}}", *(f"{state(versions, language):8}" for language in CODES)]).rstrip())
    for finding in unreadable:
        print(finding, file=sys.stderr)
    return 1 if unreadable else 0
