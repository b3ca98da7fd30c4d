"""What the versions of one article must share: headings, links, images, code, admonitions and calls, but not their text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest

from macros.findings import Finding
from macros.pages import Heading, Link, Page, Piece

# A paragraph this long, the same in two languages, was not translated.
_UNTRANSLATED_LETTERS = 40
_SHOWN = 90

# Small words that hardly occur in the other languages; so many of them, and none of its own, make a foreign paragraph.
_SMALL_WORDS = {
    "de": frozenset("der die das und ist nicht ein eine den dem des mit auf für von zu im sich auch werden wird sind".split()),
    "en": frozenset("the and is not of to in for with that this it are on by be from as you your".split()),
    "tr": frozenset("bir ve bu için ile da de değil daha çok olarak kadar ne ya her gibi sonra ama hem en".split()),
}
_FOREIGN_WORDS = 4
_NAMES = {"de": "German", "en": "English", "tr": "Turkish"}
_CALL = re.compile(r"\{\{.*?\}\}")
_QUOTED = re.compile(r"„[^“”]*[“”]|“[^”]*”|«[^»]*»")

Part = Heading | Link | Piece


def findings(page: Page, source: Page, failed: Mapping[str, Collection[int]] = {}) -> Iterator[Finding]:
    """The first difference of each kind between a page and the version it was made from.

    `failed` are the lines of a file on which a call has its own finding: a call that is wrong there is not compared.
    """
    yield from _in_order("heading", page, page.headings, source, source.headings)
    yield from _in_order("code block", page, page.code_blocks, source, source.code_blocks)
    yield from _in_order("admonition", page, page.admonitions, source, source.admonitions)
    for kind, image in (("image", True), ("link", False)):
        own, others = ([link for link in links if link.image == image] for links in (page.links, source.links))
        yield from _in_any_order(kind, page, own, source, others)
    if page.can_be_parsed and source.can_be_parsed:
        bad, as_bad = failed.get(page.path, ()), failed.get(source.path, ())
        yield from _in_any_order("call", page, page.calls, source, source.calls, bad, as_bad)


def _text(part: Part) -> str:
    return part.target if isinstance(part, Link) else part.text if isinstance(part, Piece) else str(part)


def _in_order(kind: str, page: Page, own: Sequence[Part], source: Page, others: Sequence[Part]) -> Iterator[Finding]:
    """The first place at which two sequences differ."""
    for number, (mine, theirs) in enumerate(zip_longest(own, others), 1):
        if mine is None:
            place, line = f"{source.path}:{theirs.line}", own[-1].line if own else page.body_line
            yield Finding(page.path, line, f"lacks {kind} {number} of {place}: {_cut(_text(theirs))}")
        elif theirs is None:
            yield Finding(page.path, mine.line, f"{kind} {number} is not in {source.path}: {_cut(_text(mine))}")
        elif _text(mine) != _text(theirs):
            shown, other = _apart(_text(mine), _text(theirs))
            yield Finding(page.path, mine.line, f"{kind} {number} is {shown}; {source.path}:{theirs.line} has {other}")
        else:
            continue
        return


def _in_any_order(
    kind: str,
    page: Page,
    own: Sequence[Part],
    source: Page,
    others: Sequence[Part],
    bad: Collection[int] = (),
    as_bad: Collection[int] = (),
) -> Iterator[Finding]:
    """The first part that one page has more often than the other, beside what stands there in its place."""
    mine, theirs = Counter(map(_text, own)), Counter(map(_text, others))
    extra = [part for part in own if mine[_text(part)] > theirs[_text(part)]]
    missing = [part for part in others if theirs[_text(part)] > mine[_text(part)]]
    # A wrong call has no partner because it is wrong: it and what it stands for are left out on both sides.
    for one, two, lines in ((extra, missing, bad), (missing, extra, as_bad)):
        for part in [part for part in one if part.line in lines]:
            one.remove(part)
            if two:
                two.remove(_nearest(part, two))
    if extra and missing:
        first, nearest = extra[0], _nearest(extra[0], missing)
        shown, other = _apart(_text(first), _text(nearest))
        yield Finding(page.path, first.line, f"the {kind} {shown} differs from {source.path}:{nearest.line}: {other}")
    elif extra:
        yield Finding(page.path, extra[0].line, f"the {kind} {_cut(_text(extra[0]))} is not in {source.path}")
    elif missing:
        place = f"{source.path}:{missing[0].line}"
        line = _place_of(missing[0], others, page, own)
        yield Finding(page.path, line, f"lacks the {kind} of {place}: {_cut(_text(missing[0]))}")


def _nearest(part: Part, others: Sequence[Part]) -> Part:
    """Which of the others is most like a part."""
    return max(others, key=lambda other: SequenceMatcher(None, _text(part), _text(other)).ratio())


def _place_of(missing: Part, others: Sequence[Part], page: Page, own: Sequence[Part]) -> int:
    """Where a page would have what it lacks: at the part that stands before it in the source, else where its text begins."""
    before = [_text(part) for part in others[: list(others).index(missing)]]
    lines = {_text(part): part.line for part in own}
    return next((lines[text] for text in reversed(before) if text in lines), page.body_line)


def untranslated(page: Page, source: Page, versions: Iterable[Page]) -> Iterator[Finding]:
    """Running text of a translation that is the same in its source or another language, or reads like one."""
    texts = {
        other.language: {piece.text: f"{other.path}:{piece.line}" for piece in _texts(other)}
        for other in versions
        if other is not page
    }
    for piece in _texts(page):
        if sum(map(str.isalpha, piece.text)) < _UNTRANSLATED_LETTERS:
            continue
        score = _small_words(piece.text)
        # Two translations with the same text: the one whose language it is not has to be mended.
        same = [code for code in texts if piece.text in texts[code]]
        same = [code for code in same if code == source.language or score[code] >= score[page.language]]
        foreign = max((code for code in score if code != page.language), key=lambda code: score[code])
        if same:
            says = f"this paragraph is the same text as {texts[same[0]][piece.text]}; translate it"
            yield Finding(page.path, piece.line, says)
        elif score[page.language] == 0 and score[foreign] >= _FOREIGN_WORDS:
            yield Finding(page.path, piece.line, f"this paragraph reads like {_NAMES[foreign]}; translate it")


def _texts(page: Page) -> list[Piece]:
    """Paragraphs and the sentences of the front matter."""
    fields = ("title", "description", "standfirst")
    heads = [Piece(_CALL.sub("", str(page.meta[name])), page.front.line(name)) for name in fields if name in page.meta]
    return heads + page.paragraphs


def _small_words(text: str) -> dict[str, int]:
    """How many of the small words of each language a text has outside of quotations."""
    words = re.findall(r"[^\W\d_]+", _QUOTED.sub(" ", text).lower())
    return {code: sum(word in small for word in words) for code, small in _SMALL_WORDS.items()}


def _apart(one: str, other: str) -> tuple[str, str]:
    """Two different texts, cut so that the place where they part can be seen."""
    same = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    start = max(0, same - _SHOWN // 2) if max(len(one), len(other)) > _SHOWN else 0
    return _cut(one, start), _cut(other, start)


def _cut(text: str, start: int = 0) -> str:
    shown = ("…" if start else "") + text[start : start + _SHOWN] + ("…" if len(text) > start + _SHOWN else "")
    return f"`{shown}`".replace("\n", "⏎")
