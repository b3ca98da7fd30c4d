"""What a reader of a built site sees: every computed figure and every verdict with its place, read from the HTML.

It knows only what figures.py and table.py write (`data.figure`, `data-verdict`, tables with headings) and no site
generator, so it reads a site that any earlier state of this repository has built.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

# Pages that repeat what stands on others: lists of posts, tags.
_REPEATING = re.compile(r"(^|/)(blog/index|blog/(archive|category|page)/.*|tags/index|articles/index)\.html$")
_VOID = {"br", "img", "hr", "input", "meta", "link", "source", "wbr", "area", "base", "col", "embed", "track"}
_CONTEXT = 32


@dataclass(frozen=True)
class Shown:
    """One figure or verdict as it stands on a page.

    section   anchor of the heading above it
    block     0 in running text, else the number of the table or chart within the section
    heads     what tells that table from others, "" in running text
    row, column   headings of its line and column; in running text `row` is the text before it
    at        line, column and place within the cell: the same in every language
    """

    section: str
    block: int
    heads: str
    row: str
    column: str
    at: tuple[int, int, int]
    verdict: bool
    value: str
    text: str


@dataclass
class Page:
    """One page in one language: its figures in order, and its text with a mark in place of each figure."""

    title: str = ""
    shown: list[Shown] = field(default_factory=list)
    text: str = ""


class _Reader(HTMLParser):
    """Goes through a page once."""

    def __init__(self) -> None:
        super().__init__()
        self.page = Page()
        self.section = ""
        self.open: list[tuple[str, dict[str, str]]] = []
        self.depth = 0  # of the article
        self.silent = 0  # of svg, script, style and the marks of headings
        self.blocks: Counter[str] = Counter()
        self.words: list[str] = []
        self.before = ""
        self.in_run = 0
        self.table: list[str] | None = None
        self.in_head = False
        self.line, self.cell, self.place = 0, 0, 0
        self.heading_of_row = ""
        self.caught: list[str] | None = None
        self.found: tuple[bool, str] | None = None
        self.until = 0

    # ---- tags

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attributes}
        classes = known.get("class", "").split()
        if tag in _VOID:
            return
        self.open.append((tag, known))
        if tag == "article" and not self.depth:
            self.depth = len(self.open)
        if not self.depth:
            return
        if self.silent or tag in ("svg", "script", "style") or "headerlink" in classes:
            self.silent = self.silent or len(self.open)
            return
        if tag in ("h1", "h2", "h3", "h4", "p", "li", "td", "th", "summary"):
            self.before = ""
        if tag in ("h2", "h3") and known.get("id"):
            self.section = known["id"]
            self.in_run = 0
        elif tag == "figure":
            self.blocks[self.section] += 1
        elif tag == "table":
            self.table, self.line, self.in_head = [], 0, False
        elif tag == "thead":
            self.in_head = True
        elif tag == "tr" and self.table is not None:
            self.line, self.cell, self.heading_of_row = self.line + 1, -1, ""
            if self.in_head:
                self.table.clear()  # only the last line of headings stands above the cells
        elif tag in ("td", "th") and self.table is not None:
            self.cell, self.place = self.cell + 1, 0
            self._catch(None)
        if tag == "data" and "figure" in classes:
            self._catch((False, known.get("value", "")))
        elif known.get("data-verdict"):
            self._catch((True, known["data-verdict"]))

    def _catch(self, found: tuple[bool, str] | None) -> None:
        """Collect the text until the element that has just begun ends."""
        if self.found is None:
            self.caught, self.found, self.until = [], found, len(self.open)

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID or tag not in [name for name, _ in self.open]:
            return
        while self.open:
            name, _ = self.open[-1]
            self._close(name)
            self.open.pop()
            if name == tag:
                return

    def _close(self, name: str) -> None:
        level = len(self.open)
        if self.silent == level:
            self.silent = 0
        if self.depth == level:
            self.depth = 0
        if self.caught is not None and self.until == level:
            text, found = _plain("".join(self.caught)), self.found
            self.caught = self.found = None
            if found is not None:
                self._keep(found, text)
            elif self.table is not None and name == "th":
                if self.in_head:
                    self.table.append(text)
                elif not self.heading_of_row:
                    self.heading_of_row = text
        if name == "thead":
            self.in_head = False
        elif name == "table":
            self.table = None

    def _keep(self, found: tuple[bool, str], text: str) -> None:
        is_verdict, value = found
        if self.table is None:
            self.in_run += 1
            at, block, heads, column = (self.in_run, 0, 0), 0, "", ""
            row = _plain(self.before)[-_CONTEXT:]
        else:
            self.place += 1
            at, block, heads = (self.line, self.cell, self.place), self.blocks[self.section], " | ".join(self.table)
            row = self.heading_of_row
            column = self.table[self.cell] if self.cell < len(self.table) else ""
        self.page.shown.append(Shown(self.section, block, heads, row, column, at, is_verdict, value, text))
        self.before += "#"
        self.words.append("#")

    # ---- text

    def handle_data(self, data: str) -> None:
        if [name for name, _ in self.open[-1:]] == ["title"] and not self.page.title:
            self.page.title = _plain(data)
        if not self.depth or self.silent:
            return
        if self.caught is not None:
            self.caught.append(data)
        if self.found is None:
            self.before += data
            self.words.append(data)


def _plain(text: str) -> str:
    return " ".join(text.split())


def read_page(html: str) -> Page:
    """The figures and the text of one page."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    reader.page.text = _plain(" ".join(reader.words))
    return reader.page


def read(site: Path) -> dict[str, dict[str, Page]]:
    """Language → page's address → what it shows, for a whole site; pages that repeat others are left out."""
    found: dict[str, dict[str, Page]] = {}
    for folder in sorted(path for path in site.iterdir() if (path / "index.html").is_file() and len(path.name) == 2):
        pages = {}
        for file in sorted(folder.rglob("*.html")):
            name = file.relative_to(folder).as_posix()
            if name != "404.html" and not _REPEATING.search(name):
                pages[name.removesuffix("index.html")] = read_page(file.read_text(encoding="utf-8"))
        found[folder.name] = pages
    return found
