"""The report of `changes.py` as text for people: Markdown for a comment, and a page of the preview.

The report may come from a stranger's branch, so everything in it is text here: nothing becomes a link, a mention, an
image or HTML. It needs nothing but Python, so that what publishes previews runs it without installing anything.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

MOST = 60_000
"""Signs of a comment: GitHub takes 65536."""
_LONGEST = 160
_ROWS = 400

Rows = list[list[str]]


def markdown(report: Mapping[str, Any], most: int = MOST) -> str:
    """The report as Markdown of at most so many signs; what does not fit is counted."""
    lines: list[str] = []
    for title, rows, head in _sections(report):
        lines += ["", f"### {title}" if lines else f"## {title}"]
        if head:
            lines += ["", _line(head), _line(["---"] * len(head))]
        lines += [_line(row) if head else f"- {safe(row[0])}" for row in rows]
    text = "\n".join(lines).strip() + "\n"
    if len(text) <= most:
        return text
    note = "\n\nThe report is longer than a comment may be; the rest is on the page of the preview.\n"
    return text[: most - len(note)].rpartition("\n")[0] + note


def page(report: Mapping[str, Any]) -> str:
    """The report as a page on its own, with the style of the site's root."""
    body = []
    for number, (title, rows, head) in enumerate(_sections(report)):
        level = "h2" if number else "h1"
        body.append(f"<{level}>{html.escape(title)}</{level}>")
        if head:
            cells = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in head)
            listed = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
            body.append(f"<table><thead><tr>{cells}</tr></thead><tbody>{listed}</tbody></table>")
        elif rows:
            body.append("<ul>" + "".join(f"<li>{html.escape(row[0])}</li>" for row in rows) + "</ul>")
    policy = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="robots" content="noindex, nofollow"><title>Changed figures</title>'
        '<link rel="stylesheet" href="../../assets/stylesheets/root.css"></head>'
        f'<body><main class="report">{"".join(body)}</main></body></html>\n'
    )


def _sections(report: Mapping[str, Any]) -> Iterator[tuple[str, Rows, Sequence[str]]]:
    """Title, rows and column heads of each part; the first one says what to know at once."""
    yield _headline(report), _summary(report), ()
    if claims := report["claims"]:
        yield f"Sentences that are no longer true ({len(claims)})", _cut(claims, lambda claim: [claim]), ()
    heads = ("Page", "Where", "Before", "After", "Languages", "Call")
    if flips := report["flips"]:
        yield f"Verdicts that flip ({len(flips)})", _changes(flips, with_percent=False), heads
    if figures := report["figures"]:
        yield f"Figures that change ({len(figures)})", _changes(figures, with_percent=True), (*heads[:4], "Difference", *heads[4:])
    for name, title in (("came", "Figures that are new"), ("went", "Figures that are gone")):
        if counts := report[name]:
            yield title, _cut(counts, _count_row), ("Page", "Section", "Lines", "Figures", "Languages")
    for name, title in (("added", "New pages"), ("removed", "Pages that are gone")):
        if pages := report["pages"][name]:
            yield title, _cut(pages, lambda address: [str(address)]), ()
    if records := report["records"]:
        row: Callable[[Any], list[str]] = lambda change: [change["file"], change["record"], "new" if change["new"] else "gone"]
        yield "Records that are new or gone", _cut(records, row), ("File", "Record", "")
    if data := report["data"]:
        row = lambda change: [change["file"], ".".join([change["record"], *change["path"]]), change["old"], change["new"]]
        yield "Data", _cut(data, row), ("File", "Field", "Before", "After")
    if code := report["code"]:
        yield "Formulas", _cut(code, _code_row), ("File", "What differs")
    if pages := report["pages"]["text_only"]:
        yield "Pages of which only the text changes", _cut(pages, lambda address: [str(address)]), ()


def _headline(report: Mapping[str, Any]) -> str:
    if flips := len(report["flips"]):
        return f"⚠ {flips} verdict{'s flip' if flips > 1 else ' flips'}"
    if figures := len(report["figures"]):
        return f"{figures} figure{'s change' if figures > 1 else ' changes'}, no verdict flips"
    if report["came"] or report["went"]:
        return "Figures are new or gone, none changes"
    return "No figure changes"


def _summary(report: Mapping[str, Any]) -> Rows:
    lines = [f"compared with {report['base'][:12]}"]
    shifts = [change["percent"] for change in report["figures"] if change["percent"] is not None]
    if shifts:
        lines.append(f"figures change by {_signed(min(shifts))} to {_signed(max(shifts))}")
    if report["below_print"]:
        lines.append(f"{report['below_print']} more change by less than is printed")
    return [[line] for line in lines]


def _changes(changes: Sequence[Mapping[str, Any]], with_percent: bool) -> Rows:
    def row(change: Mapping[str, Any]) -> list[str]:
        old, new = next(iter(change["texts"].values()))
        place = " › ".join(part for part in (change["section"], change["row"], change["column"]) if part)
        percent = [_signed(change["percent"])] if with_percent else []
        return [change["page"] or "home", place, old, new, *percent, " ".join(change["texts"]), change["call"]]

    if with_percent:  # the largest first: that is what a reviewer looks for
        changes = sorted(changes, key=lambda change: -abs(change["percent"]) if change["percent"] is not None else -math.inf)
    return _cut(changes, row)


def _count_row(count: Mapping[str, Any]) -> list[str]:
    return [count["page"] or "home", count["section"], ", ".join(count["rows"]), str(count["number"]), " ".join(count["languages"])]


def _code_row(change: Mapping[str, Any]) -> list[str]:
    named = [
        f"{name}: {' → '.join(change['values'][name])}" if name in change["values"] else name for name in change["names"]
    ]
    return [change["file"], ", ".join(named)]


def _cut(items: Sequence[Any], row: Callable[[Any], list[str]]) -> Rows:
    rows = [row(item) for item in items[:_ROWS]]
    if len(items) > _ROWS:
        rows.append([f"… and {len(items) - _ROWS} more", *[""] * (len(rows[0]) - 1)])
    return rows


def _signed(percent: float | None) -> str:
    if percent is None:
        return ""
    digits = 1 if abs(percent) >= 1 else 2 if abs(percent) >= 0.01 else 4
    return f"{percent:+.{digits}f} %"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell if cell == "---" else safe(cell) for cell in cells) + " |"


def safe(text: object) -> str:
    """Text that Markdown shows as it is: no markup, no link, no mention, one line."""
    plain = " ".join(str(text).split())
    plain = re.sub(r"[\x00-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]", "", plain)
    plain = plain if len(plain) <= _LONGEST else plain[: _LONGEST - 1] + "…"
    marked = re.sub(r"([\\`*_{}\[\]<>#!|~$&])", r"\\\1", plain)
    # A sign without width keeps names and addresses from becoming mentions and links.
    return re.sub(r"(@|#|:(?=//)|\bwww(?=\.))", "\\1\u200b", marked)
