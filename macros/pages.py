"""One Markdown page of `docs/`, taken apart: front matter, headings, links, code and calls, each with its line."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jinja2 import Environment, TemplateSyntaxError, nodes

from macros import yamlfile
from macros.findings import DataErrors, Finding
from macros.template import PLAIN_FIELDS

# The same marks as in environment.py, so that what is a comment here is one there.
_SYNTAX = Environment(comment_start_string="{##", comment_end_string="##}")

_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?\n)?(?:---|\.\.\.)[ \t]*(?:\n|$)", re.DOTALL)
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w+-]*)")
_HEADING = re.compile(r"^(#{1,6})[ \t]+(.*?)(?:[ \t]*\{:?[ \t]*#([^\s}]*)[^}]*\})?[ \t]*#*$")
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(\s*<?([^\s)>]+)")
_ADMONITION = re.compile(r"^[ \t]*(?:!!!|\?\?\?\+?)[ \t]+([\w-]+)")
_JINJA = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{##.*?##\}", re.DOTALL)
_RAW = re.compile(r"\{%-?\s*raw\s*-?%\}.*?\{%-?\s*endraw\s*-?%\}", re.DOTALL)
_INLINE_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_HTML = re.compile(r"<!--.*?-->|</?[a-zA-Z][^>]*>", re.DOTALL)
_URL = re.compile(r"(?<=\]\()[^)]*(?=\))|https?://\S+")
_ATTRIBUTES = re.compile(r"\{:?[ \t]*[#.][^{}\n]*\}")

# What an article leaves to the words of the vocabulary. `and` and `or` count as arithmetic, as Jinja sees them.
_COMPUTATIONS: dict[type[nodes.Node], str] = {
    nodes.BinExpr: "arithmetic",
    nodes.Compare: "a comparison",
    nodes.Concat: "joined text",
    nodes.CondExpr: "a condition",
    nodes.If: "a condition",
    nodes.For: "a loop",
    nodes.Macro: "a macro of its own",
    nodes.CallBlock: "a macro of its own",
    nodes.Include: "another file",
    nodes.Import: "another file",
    nodes.FromImport: "another file",
    nodes.Extends: "another file",
}


@dataclass(frozen=True)
class Heading:
    """A heading with its explicit anchor, empty if it has none."""

    level: int
    anchor: str
    line: int

    def __str__(self) -> str:
        return f"{'#' * self.level} {{ #{self.anchor} }}" if self.anchor else "#" * self.level


@dataclass(frozen=True)
class Link:
    """A link or an image: its target, and the text's place in the body."""

    target: str
    image: bool
    text: tuple[int, int]
    line: int


@dataclass(frozen=True)
class Piece:
    """Any other part that the languages share, written so that equal parts are equal texts."""

    text: str
    line: int


@dataclass(frozen=True)
class Page:
    """One page in one language; `name` is its path below the language's folder, the same in all languages."""

    path: str
    language: str
    name: str
    source: str
    front: yamlfile.Document
    body: str
    body_line: int
    blob: str
    """The id that Git gives the file, so that `git diff <id> HEAD:<path>` shows what changed since."""

    @property
    def meta(self) -> dict[str, Any]:
        return self.front.value

    @property
    def is_post(self) -> bool:
        return self.name.startswith("blog/posts/")

    @property
    def is_index(self) -> bool:
        return self.name.rpartition("/")[2] == "index.md" and not self.is_post

    @property
    def is_draft(self) -> bool:
        return self.meta.get("draft") == "true"

    def line_at(self, position: int) -> int:
        """The line of the file on which a character of the body stands."""
        return self.body.count("\n", 0, position) + self.body_line

    @cached_property
    def code_free(self) -> str:
        """The body with fenced and inline code blanked out; every character keeps its place."""
        lines, fence = [], ""
        for line in self.body.split("\n"):
            found = _FENCE.match(line)
            if fence:
                fence = "" if found and found[1].startswith(fence) and not found[2] else fence
                line = " " * len(line)
            elif found:
                fence, line = found[1], " " * len(line)
            lines.append(line)
        return _INLINE_CODE.sub(_blank, "\n".join(lines))

    @cached_property
    def prose(self) -> str:
        """The body with code, calls, markup and addresses blanked out; every character keeps its place."""
        text = self.code_free
        for pattern in (_RAW, _JINJA, _HTML, _URL, _ATTRIBUTES):
            text = pattern.sub(_blank, text)
        return text

    @cached_property
    def headings(self) -> list[Heading]:
        # The text without code decides what is a heading; its anchor may stand behind code.
        lines = zip(self.code_free.split("\n"), self.body.split("\n"), strict=True)
        found = []
        for number, (bare, written) in enumerate(lines, self.body_line):
            if bare.startswith("#") and (match := _HEADING.match(written)):
                found.append(Heading(len(match[1]), match[3] or "", number))
        return found

    @cached_property
    def links(self) -> list[Link]:
        matches = _LINK.finditer(self.code_free)
        return [Link(match[3], bool(match[1]), match.span(2), self.line_at(match.start())) for match in matches]

    @cached_property
    def code_blocks(self) -> list[Piece]:
        """Each fenced block as a whole: its language and its lines."""
        found: list[Piece] = []
        block, fence, start, indent = [""], "", 0, 0
        for number, line in enumerate(self.body.split("\n"), self.body_line):
            match = _FENCE.match(line)
            if not fence and match:
                fence, start, indent = match[1], number, len(line) - len(line.lstrip())
                block = [line.strip().lstrip("`~").strip()]
            elif fence and match and match[1].startswith(fence) and not match[2]:
                found.append(Piece("\n".join(block), start))
                fence = ""
            elif fence:
                block.append(line[indent:].rstrip())
        return found

    @cached_property
    def admonitions(self) -> list[Piece]:
        lines = enumerate(self.code_free.split("\n"), self.body_line)
        return [Piece(match[1], number) for number, line in lines if (match := _ADMONITION.match(line))]

    @cached_property
    def paragraphs(self) -> list[Piece]:
        """Each paragraph of running text without its calls, on one line."""
        matches = re.finditer(r"(?:[^\n]*\S[^\n]*\n?)+", self.prose)
        return [Piece(" ".join(match[0].split()), self.line_at(match.start())) for match in matches]

    @cached_property
    def calls(self) -> list[Piece]:
        """What front matter and body ask the vocabulary for, in order. Raises `TemplateSyntaxError`."""
        fields = [(self.meta[name], self.front.line(name)) for name in PLAIN_FIELDS if name in self.meta]
        found = [Piece(said, line) for text, line in fields for said, _ in _statements(_SYNTAX.parse(str(text)))]
        return found + [Piece(text, line + self.body_line - 1) for text, line in _statements(self._tree)]

    @cached_property
    def _tree(self) -> nodes.Template:
        return _SYNTAX.parse(self.body)

    @cached_property
    def computations(self) -> list[Piece]:
        """Arithmetic, loops, conditions and templates of its own, none of which belongs in an article."""
        found = [(kind, node) for kind in _COMPUTATIONS for node in self._tree.find_all(kind)]
        return [Piece(_COMPUTATIONS[kind], node.lineno + self.body_line - 1) for kind, node in found]

    @property
    def can_be_parsed(self) -> bool:
        """Whether Jinja can read the page; where it cannot, rendering reports it."""
        try:
            return self.calls is not None
        except TemplateSyntaxError:
            return False


def parse(content: bytes, path: str) -> Page:
    """The page of one file; `path` is `docs/<language>/<name>`. Raises `DataErrors`."""
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataErrors([Finding(path, line, "is not UTF-8 text")]) from None
    _, language, name = path.split("/", 2)
    front, body, body_line = yamlfile.Document(path, {}, {}), text, 1
    if match := _FRONT_MATTER.match(text):
        front = yamlfile.parse(match[1] or "", path, first_line=2)
        body, body_line = text[match.end() :], text.count("\n", 0, match.end()) + 1
    if not isinstance(front.value, dict):
        raise DataErrors([Finding(path, 2, "front matter must be `key: value` lines")])
    return Page(path, language, name, text, front, body, body_line, blob_id(content))


def blob_id(content: bytes) -> str:
    """The id that Git gives a file with this content (`git hash-object`)."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _statements(tree: nodes.Template) -> Iterator[tuple[str, int]]:
    """Printed expressions, assignments, conditions and loops of a template, with their lines in it."""
    for node in tree.find_all((nodes.Output, nodes.Assign, nodes.If, nodes.For)):
        match node:
            case nodes.Output():
                parts = [part for part in node.nodes if not isinstance(part, nodes.TemplateData)]
                yield from ((_written(part), part.lineno) for part in parts)
            case nodes.Assign():
                yield f"{_written(node.target)} = {_written(node.node)}", node.lineno
            case nodes.If():
                yield f"if {_written(node.test)}", node.lineno
            case nodes.For():
                yield f"for {_written(node.target)} in {_written(node.iter)}", node.lineno


def _written(node: nodes.Node) -> str:
    """An expression as text, the same however it is spaced and quoted: `table(gpus.where(memory_at_least=16))`."""
    match node:
        case nodes.Name():
            return node.name
        case nodes.Const():
            return repr(node.value)
        case nodes.Getattr():
            return f"{_written(node.node)}.{node.attr}"
        case nodes.Getitem():
            return f"{_written(node.node)}[{_written(node.arg)}]"
        case nodes.List() | nodes.Tuple():
            return f"[{', '.join(map(_written, node.items))}]"
        case nodes.Dict():
            return "{" + ", ".join(f"{_written(pair.key)}: {_written(pair.value)}" for pair in node.items) + "}"
        case nodes.Keyword():
            return f"{node.key}={_written(node.value)}"
        case nodes.Filter() if node.node is not None:
            arguments = ", ".join(map(_written, [*node.args, *node.kwargs]))
            return f"{_written(node.node)} | {node.name}{f'({arguments})' if arguments else ''}"
        case nodes.Call():
            return f"{_written(node.node)}({', '.join(map(_written, [*node.args, *node.kwargs]))})"
    # Whatever else an expression may hold, articles hardly use: told apart by everything in it.
    parts = (_any(value) for _, value in node.iter_fields(exclude=("ctx",)))
    return f"{type(node).__name__}({', '.join(parts)})"


def _any(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_any, value))}]"
    return _written(value) if isinstance(value, nodes.Node) else repr(value)
