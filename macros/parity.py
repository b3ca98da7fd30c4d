"""What the versions of one article must share: headings, links, images, code, admonitions and calls, but not their text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest

from macros.findings import Finding
from macros.pages import Heading, Link, Page, Piece

# A paragraph this long, the same in two languages, was not translated.
_UNTRANSLATED_LETTERS = 40
_SHOWN = 90

Part = Heading | Link | Piece


def findings(page: Page, source: Page) -> Iterator[Finding]:
    """The first difference of each kind between a page and the version it was made from."""
    yield from _in_order("heading", page, page.headings, source, source.headings)
    yield from _in_order("code block", page, page.code_blocks, source, source.code_blocks)
    yield from _in_order("admonition", page, page.admonitions, source, source.admonitions)
    for kind, image in (("image", True), ("link", False)):
        own, others = ([link for link in links if link.image == image] for links in (page.links, source.links))
        yield from _in_any_order(kind, page, own, source, others)
    if page.can_be_parsed and source.can_be_parsed:
        yield from _in_any_order("call", page, page.calls, source, source.calls)
    yield from _untranslated(page, source)


def _text(part: Part) -> str:
    return part.target if isinstance(part, Link) else part.text if isinstance(part, Piece) else str(part)


def _in_order(kind: str, page: Page, own: Sequence[Part], source: Page, others: Sequence[Part]) -> Iterator[Finding]:
    """The first place at which two sequences differ."""
    for number, (mine, theirs) in enumerate(zip_longest(own, others), 1):
        if mine is None:
            place = f"{source.path}:{theirs.line}"
            yield Finding(page.path, own[-1].line if own else 0, f"lacks {kind} {number} of {place}: {_cut(_text(theirs))}")
        elif theirs is None:
            yield Finding(page.path, mine.line, f"{kind} {number} is not in {source.path}: {_cut(_text(mine))}")
        elif _text(mine) != _text(theirs):
            shown, other = _apart(_text(mine), _text(theirs))
            yield Finding(page.path, mine.line, f"{kind} {number} is {shown}; {source.path}:{theirs.line} has {other}")
        else:
            continue
        return


def _in_any_order(kind: str, page: Page, own: Sequence[Part], source: Page, others: Sequence[Part]) -> Iterator[Finding]:
    """The first part that one page has more often than the other, beside what stands there in its place."""
    mine, theirs = Counter(map(_text, own)), Counter(map(_text, others))
    extra = [part for part in own if mine[_text(part)] > theirs[_text(part)]]
    missing = [part for part in others if theirs[_text(part)] > mine[_text(part)]]
    if extra and missing:
        first = extra[0]
        nearest = max(missing, key=lambda part: SequenceMatcher(None, _text(first), _text(part)).ratio())
        shown, other = _apart(_text(first), _text(nearest))
        yield Finding(page.path, first.line, f"the {kind} {shown} differs from {source.path}:{nearest.line}: {other}")
    elif extra:
        yield Finding(page.path, extra[0].line, f"the {kind} {_cut(_text(extra[0]))} is not in {source.path}")
    elif missing:
        place = f"{source.path}:{missing[0].line}"
        yield Finding(page.path, 0, f"lacks the {kind} of {place}: {_cut(_text(missing[0]))}")


def _untranslated(page: Page, source: Page) -> Iterator[Finding]:
    known = {piece.text: piece.line for piece in source.paragraphs}
    for piece in page.paragraphs:
        if piece.text in known and sum(map(str.isalpha, piece.text)) >= _UNTRANSLATED_LETTERS:
            says = f"this paragraph is the same text as {source.path}:{known[piece.text]}; translate it"
            yield Finding(page.path, piece.line, says)


def _apart(one: str, other: str) -> tuple[str, str]:
    """Two different texts, cut so that the place where they part can be seen."""
    same = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    start = max(0, same - _SHOWN // 2) if max(len(one), len(other)) > _SHOWN else 0
    return _cut(one, start), _cut(other, start)


def _cut(text: str, start: int = 0) -> str:
    shown = ("…" if start else "") + text[start : start + _SHOWN] + ("…" if len(text) > start + _SHOWN else "")
    return f"`{shown}`".replace("\n", "⏎")
