"""One article's Jinja → Markdown, with every mistake of its author as a finding on its true line.

A mistake does not end the rendering: it is recorded, its place in the page shows a mark, and what depends on it
stays silent. `check.py` and the MkDocs adapter both render through here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import unescape
from typing import Any

from jinja2 import TemplateSyntaxError
from markupsafe import Markup

from macros.caption import Told
from macros.environment import ArticleEnvironment, check_names, sentence
from macros.figures import element, joined
from macros.findings import Finding

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n.*?\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)\n*", re.DOTALL)
PLAIN_FIELDS = ("title", "description", "standfirst")
"""Front matter that may hold words of the vocabulary; figures there become plain text."""


@dataclass(frozen=True)
class Rendered:
    """What became of a template, and every mistake in it."""

    text: str
    findings: tuple[Finding, ...]


def render(text: str, path: str, environment: ArticleEnvironment, first_line: int = 1, **variables: Any) -> Rendered:
    """Render the text of an article that begins at `first_line` of the file `path`; `variables` join the words."""
    environment.take_mistakes()
    environment.charts_on_page = 0
    environment.told = Told()
    output = _render(text, environment, variables)
    findings = tuple(Finding(path, first_line + line - 1, message) for line, message in environment.take_mistakes())
    return Rendered(output if output is not None else "", findings)


def _render(text: str, environment: ArticleEnvironment, variables: Mapping[str, Any]) -> str | None:
    try:
        tree = environment.parse(text)
        check_names(tree, environment, variables)
        code = environment.compile(tree)
        template = environment.template_class.from_code(environment, code, environment.make_globals(None))
        return template.render(**variables)
    except TemplateSyntaxError as error:
        message = str(error.message).split(". ")[0].rstrip(".")
        message, line = f"{message[:1].lower()}{message[1:]}", error.lineno
        if unclosed := _unclosed_tag(text, line):
            message, line = unclosed
        environment.report(f"template syntax: {message}", line)
    except Exception as error:
        environment.report(sentence(error), _line_of(error))
    return None


def _unclosed_tag(text: str, last_line: int) -> tuple[str, int] | None:
    """The first tag that another one or the end follows before it is closed; Jinja only sees where that leads to."""
    marks = list(re.finditer(r"\{\{|\{%|\}\}|%\}", text))
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        opens = mark[0] in ("{{", "{%")
        line = text.count("\n", 0, mark.start()) + 1
        if opens and line <= last_line and (following is None or following[0] in ("{{", "{%")):
            return f"{mark[0]!r} is not closed", line
    return None


def _line_of(error: BaseException) -> int:
    """The line of the template where an exception passed through it."""
    line, trace = 1, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno  # Jinja has rewritten the traceback to the template's own lines
        trace = trace.tb_next
    return line


def front_matter(source: str) -> tuple[str, str]:
    """The front matter of a Markdown file with its fences and the blank lines after it, and the text."""
    match = _FRONT_MATTER.match(source)
    end = match.end() if match else 0
    return source[:end], source[end:]


def first_line(source: str, body: str) -> int:
    """The line of a file where its text begins, given the text as MkDocs passes it on."""
    lines, wanted = source.splitlines(), body.splitlines()
    for start in range(len(lines) - len(wanted) + 1):
        if lines[start : start + len(wanted)] == wanted:
            return start + 1
    return front_matter(source)[0].count("\n") + 1


def render_field(
    source: str, name: str, value: str, path: str, environment: ArticleEnvironment, **variables: Any
) -> Rendered:
    """Render a value of the front matter to plain text, for a title or a description."""
    head = front_matter(source)[0].splitlines()
    line = next((number for number, text in enumerate(head, 1) if text.startswith(f"{name}:")), 1)
    rendered = render(value, path, environment, line, **variables)
    return Rendered(plain(rendered.text), rendered.findings)


def plain(html: str) -> str:
    """The text of HTML; unlike markupsafe's `striptags` it keeps no-break spaces."""
    return unescape(re.sub(r"<[^>]*>", "", html))


def error_box(findings: Iterable[Finding]) -> Markup:
    """The findings of a page as a box on that page, for whoever previews it."""
    return element(
        "div", joined(element("p", element("code", str(finding))) for finding in findings), class_="vg-error"
    )
