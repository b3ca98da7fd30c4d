"""The pages in `docs/`: their front matter, headings, links and calls with lines, and which pages are one article.

The same path under `docs/de`, `docs/en` and `docs/tr` is the same article.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from jinja2 import Environment, TemplateSyntaxError, nodes

from macros import yamlfile
from macros.findings import DataErrors, Finding
from macros.language import CODES

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w+-]*)")
_HEADING = re.compile(r"^(#{1,6})[ \t]+(.*?)(?:[ \t]*\{:?[ \t]*#([^\s}]*)[^}]*\})?[ \t]*#*$")
_LINK = re.compile(r"(!?)\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(\s*<?([^\s)>]+)")
_ADMONITION = re.compile(r"^[ \t]*(?:!!!|\?\?\?\+?)[ \t]+([\w-]+)")
_JINJA = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_RAW = re.compile(r"\{%-?\s*raw\s*-?%\}.*?\{%-?\s*endraw\s*-?%\}", re.DOTALL)
_INLINE_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_HTML = re.compile(r"<!--.*?-->|</?[a-zA-Z][^>]*>", re.DOTALL)
_URL = re.compile(r"(?<=\]\()[^)]*(?=\))|https?://\S+")


@dataclass(frozen=True)
class Heading:
    level: int
    anchor: str
    text: str
    line: int


@dataclass(frozen=True)
class Link:
    target: str
    image: bool
    line: int


@dataclass(frozen=True)
class Call:
    """One printed expression or assignment, written out so that equal calls are equal texts."""

    text: str
    line: int


@dataclass(frozen=True)
class Article:
    """One page in one language; `name` is its path below the language's folder, the same in all languages."""

    path: str
    language: str
    name: str
    text: str
    front: yamlfile.Document
    body: str
    body_line: int
    blob: str = field(repr=False)

    @property
    def meta(self) -> dict[str, Any]:
        return self.front.value

    @property
    def is_post(self) -> bool:
        return self.name.startswith("blog/posts/")

    @property
    def is_index(self) -> bool:
        return self.name.rpartition("/")[2] == "index.md" and not self.is_post

    @cached_property
    def prose(self) -> str:
        """The body with code, calls, markup and addresses blanked out; every character keeps its place."""
        text = self.code_free
        for pattern in (_RAW, _JINJA, _HTML, _URL):
            text = pattern.sub(_blank, text)
        return text

    @cached_property
    def code_free(self) -> str:
        """The body with fenced and inline code blanked out."""
        lines, fence = [], ""
        for line in self.body.split("\n"):
            found = _FENCE.match(line)
            if fence:
                closes = found and found[1].startswith(fence) and not found[2]
                fence = "" if closes else fence
                line = " " * len(line)
            elif found:
                fence, line = found[1], " " * len(line)
            lines.append(line)
        return _INLINE_CODE.sub(_blank, "\n".join(lines))

    @cached_property
    def headings(self) -> list[Heading]:
        # The prose decides what is a heading; the text beside it still has its code and calls.
        pairs = zip(self.code_free.split("\n"), self.body.split("\n"))
        found = []
        for number, (bare, written) in enumerate(pairs, self.body_line):
            if bare.startswith("#") and (match := _HEADING.match(written)):
                found.append(Heading(len(match[1]), match[3] or "", match[2], number))
        return found

    @cached_property
    def links(self) -> list[Link]:
        found = _LINK.finditer(self.code_free)
        return [Link(match[2], bool(match[1]), self.line_at(match.start())) for match in found]

    @cached_property
    def fences(self) -> list[Call]:
        """The language of each fenced block."""
        found, fence = [], ""
        for number, line in enumerate(self.body.split("\n"), self.body_line):
            if match := _FENCE.match(line):
                if not fence:
                    fence = match[1]
                    found.append(Call(match[2] or "text", number))
                elif match[1].startswith(fence) and not match[2]:
                    fence = ""
        return found

    @cached_property
    def admonitions(self) -> list[Call]:
        lines = enumerate(self.code_free.split("\n"), self.body_line)
        return [Call(match[1], number) for number, line in lines if (match := _ADMONITION.match(line))]

    @cached_property
    def calls(self) -> list[Call]:
        """Everything that the page asks the vocabulary for, in order. Raises `TemplateSyntaxError`."""
        tree = Environment().parse(self.body)
        found = []
        for node in tree.find_all((nodes.Output, nodes.Assign)):
            parts = [node] if isinstance(node, nodes.Assign) else node.nodes
            for part in parts:
                if not isinstance(part, nodes.TemplateData):
                    found.append(Call(written(part), part.lineno + self.body_line - 1))
        return found

    def syntax_error(self) -> Finding | None:
        try:
            _ = self.calls
        except TemplateSyntaxError as error:
            return Finding(self.path, error.lineno + self.body_line - 1, f"{error.message}")
        return None

    def line_at(self, position: int) -> int:
        """The line of the file on which a character of the body stands."""
        return self.body.count("\n", 0, position) + self.body_line


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def blob_id(content: bytes) -> str:
    """The id that Git gives a file with this content, so that `git diff <id> HEAD:<path>` shows what changed."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def parse(content: bytes, path: str) -> Article:
    """The article of one file; `path` begins with `docs/<language>/`. Raises `DataErrors`."""
    try:
        text = content.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataErrors([Finding(path, line, "is not UTF-8 text")]) from None
    _, language, name = path.split("/", 2)
    front, body, body_line = yamlfile.Document(path, {}, {}), text, 1
    if match := re.match(r"---[ \t]*\n(.*?\n)---[ \t]*(?:\n|$)", text, re.DOTALL):
        front = yamlfile.parse(match[1], path, first_line=2)
        body, body_line = text[match.end() :], text.count("\n", 0, match.end()) + 1
    if not isinstance(front.value, dict):
        raise DataErrors([Finding(path, 2, "front matter must be `key: value` lines")])
    return Article(path, language, name, text, front, body, body_line, blob_id(content))


def read_all(root: Path, findings: list[Finding]) -> dict[str, dict[str, Article]]:
    """name → language → article for every page; what cannot be read is added to the findings."""
    found: dict[str, dict[str, Article]] = {}
    for language in CODES:
        for file in sorted((root / "docs" / language).rglob("*.md")):
            path = file.relative_to(root).as_posix()
            try:
                article = parse(file.read_bytes(), path)
            except DataErrors as errors:
                findings += errors.findings
                continue
            found.setdefault(article.name, {})[language] = article
    return found


def source_of(versions: dict[str, Article]) -> Article | None:
    """The version that the others are translated from: the one without a `translation` block."""
    return next((article for article in versions.values() if "translation" not in article.meta), None)


def written(node: nodes.Node) -> str:
    """An expression as text, the same for every way to write it: `table(gpus.where(memory_at_least=16))`."""
    match node:
        case nodes.Assign():
            return f"{written(node.target)} = {written(node.node)}"
        case nodes.Name():
            return node.name
        case nodes.Const():
            return repr(node.value)
        case nodes.Getattr():
            return f"{written(node.node)}.{node.attr}"
        case nodes.Getitem():
            return f"{written(node.node)}[{written(node.arg)}]"
        case nodes.List() | nodes.Tuple():
            return f"[{', '.join(map(written, node.items))}]"
        case nodes.Dict():
            return "{" + ", ".join(f"{written(pair.key)}: {written(pair.value)}" for pair in node.items) + "}"
        case nodes.Keyword():
            return f"{node.key}={written(node.value)}"
        case nodes.Filter() if node.node is not None:
            arguments = _arguments(node)
            return f"{written(node.node)} | {node.name}{f'({arguments})' if arguments else ''}"
        case nodes.Call():
            return f"{written(node.node)}({_arguments(node)})"
    parts = ", ".join(written(child) for child in node.iter_child_nodes())
    return f"{type(node).__name__}({parts})"


def _arguments(node: nodes.Call | nodes.Filter) -> str:
    keywords = sorted(node.kwargs, key=lambda keyword: keyword.key)
    return ", ".join(map(written, [*node.args, *keywords]))


def pages(articles: dict[str, dict[str, Article]]) -> Iterator[Article]:
    for versions in articles.values():
        yield from versions.values()
