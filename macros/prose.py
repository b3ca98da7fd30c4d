"""What must not stand in a page: typed figures, arithmetic, endings on computed numbers, wrong signs, words and phrases that say less."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from macros import yamlfile
from macros.findings import DataErrors, Finding, quote
from macros.language import CODES
from macros.pages import Page
from macros.template import PLAIN_FIELDS

# What each list calls its forms.
WORDS = {"data/discouraged.yml": "is not used here", "data/dead_phrases.yml": "is an empty phrase"}

_NUMBER = r"\d+(?:[.,]\d+)*"
_MEMORY = re.compile(rf"(?<![\w.,])({_NUMBER})(?:–({_NUMBER}))?([\s\u00a0\u202f]|&nbsp;|&#160;|-)?(Gi?B)\b")
_QUOTATION = re.compile(r"„[^“”]*[“”]|“[^”]*”|«[^»]*»|^[ \t]*>.*$", re.MULTILINE)
# The number on a card's box is a name; as what something needs it is a figure that should have been computed.
_NEED_BEFORE = re.compile(
    r"\b(?:brauch|benötig|beleg|verlang|need|take|require|use|occup)\w*[^\w|.]+(?:\w+[^\w|.]+){0,3}$", re.IGNORECASE
)
_NEED_BEHIND = re.compile(r"^[^\w|.]+(?:\w+[^\w|.]+){0,2}(?:gerek|ister|tutar|kapla|ihtiyaç|yer tut)", re.IGNORECASE)

# A sign of percent where the language does not write it.
_PERCENT = {
    "de": (re.compile(r"\d(?:%| %)|%[ \u00a0\u202f]?\d"), "50\u202f%, with a narrow no-break space"),
    "en": (re.compile(r"\d[ \u00a0\u202f]%|%[ \u00a0\u202f]?\d"), "50%"),
    "tr": (re.compile(r"\d[ \u00a0\u202f]?%(?!\d)|%[ \u00a0\u202f]\d"), "%50"),
}
# A decimal sign of the other language before a unit; three digits behind it are a group.
_UNIT = r"[\s\u00a0\u202f-]?(?:%|[KMGT]i?B\b|Mrd\b|Mio\b|Milliarden\b|billion\b|milyar\b|Bytes?\b|bytes?\b|bayt\b|[Bb]its?\b)"
_SEPARATOR = {
    "de": (re.compile(rf"(?<![\w.,])\d+\.(?!\d{{3}}\b)\d+{_UNIT}"), "a comma"),
    "en": (re.compile(rf"(?<![\w.,])\d+,(?!\d{{3}}\b)\d+{_UNIT}"), "a point"),
    "tr": (re.compile(rf"(?<![\w.,])\d+\.(?!\d{{3}}\b)\d+{_UNIT}"), "a comma"),
}
# Digits are grouped from five on, so that 8192 is not taken for 8.192 in another language.
_GROUPS = {
    "de": (re.compile(r"(?<![\w.,/-])[1-9]\.\d{3}(?![\w.,]|\.\d)(?=[ \u00a0]+\w{3})"), "2048 and 32.768"),
    "en": (re.compile(r"(?<![\w.,/-])[1-9],\d{3}(?![\w,])"), "2048 and 32,768"),
    "tr": (re.compile(r"(?<![\w.,/-])[1-9]\.\d{3}(?![\w.,]|\.\d)(?=[ \u00a0]+\w{3})"), "2048 and 32.768"),
}
_CALL = re.compile(r"\{\{.*?\}\}")
_APOSTROPHE = re.compile(r"\w'\w+")
_ENDING_ON_CALL = re.compile(r"\}\}['’]\w+")
_ENDING_ON_UNIT = re.compile(r"\b(?:Gi?B|MiB|TB|VRAM)['’]\w+|%\d+(?:,\d+)?['’]\w+")

# Endings of Turkish officialese. Once is a slip, and a copula here and there is grammar; more of them is a tone.
_MEKTEDIR = re.compile(r"\w+m[ae]kt[ae]d[ıi]r(?:l[ae]r)?\b")
# `t` after a voiceless consonant, `d` after anything else; the t of azaltır belongs to the verb.
_COPULA = re.compile(r"\w(?:[fstkçşhp]t|(?<!na)(?<![fstkçşhp])d)[ıiuü]r(?:l[ae]r)?[”)*]*\s*$")
_SENTENCE = re.compile(r"[^.!?:;\n]*[^\W\d][^.!?:;\n]*(?=[.!?:;\n]|$)")
_FEWEST_SENTENCES = 6


@dataclass(frozen=True)
class Discouraged:
    """A form that is not written, and what to write instead."""

    core: str
    """What each occurrence holds: the form without its first letter, which may be a capital."""
    says: str
    """What is wrong with it, and what to write instead."""
    pattern: re.Pattern[str]


def findings(page: Page, boxes: Collection[int] | None, words: Mapping[str, list[Discouraged]]) -> Iterator[Finding]:
    """What is wrong with the words of one page; `boxes` are the numbers of GB on boxes of known cards, None if unknown."""
    for piece in page.computations if page.can_be_parsed else ():
        yield Finding(page.path, piece.line, f"{piece.text} does not belong in a page; let a word of the vocabulary do it")
    for number, message in [*_composed(page), *_endings_on_calls(page), *_tone(page)]:
        yield Finding(page.path, page.line_at(number), message)
    # The sentences of the front matter count too: they are what a search engine shows.
    texts = [(page.prose, page.body_line)]
    texts += [(_CALL.sub(_blank, str(page.meta[name])), page.front.line(name)) for name in PLAIN_FIELDS if name in page.meta]
    for text, first in texts:
        quoted = _QUOTATION.sub(_blank, text)  # a page that discusses a word or shows what a tool prints quotes it
        for number, message in [
            *_memory(quoted, page.language, boxes),
            *_signs(text, page.language),
            *_endings(text, page.language),
            *discouraged(quoted, words.get(page.language, [])),
        ]:
            yield Finding(page.path, first + text.count("\n", 0, number), message)


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def discouraged(text: str, words: Iterable[Discouraged]) -> Iterator[tuple[int, str]]:
    """Where a text has a form that is not written, and what would be right."""
    flat = " ".join(text.split())
    for word in words:
        if word.core not in flat:  # far quicker than the pattern, and mostly true
            continue
        for match in word.pattern.finditer(text):
            yield match.start(), f"{match[0]!r} {word.says}"


def _memory(text: str, language: str, boxes: Collection[int] | None) -> Iterator[tuple[int, str]]:
    """Typed amounts of GB and GiB that are not the name of a card's size."""
    for match in _MEMORY.finditer(text):
        numbers = [number for number in match.group(1, 2) if number]
        # While the data is wrong nobody knows the cards, and then a whole number of GB may be the name of one.
        on_boxes = match[4] == "GB" and all(
            number.isdigit() and (boxes is None or int(number) in boxes) for number in numbers
        )
        sentence = text[max(0, match.start() - 80) : match.start()].rpartition("\n")[2]
        behind = text[match.end() : match.end() + 80].partition("\n")[0]
        if not on_boxes:
            yield match.start(), f"{match[0]!r} is typed; let a word of the vocabulary compute it"
        elif _NEED_BEFORE.search(sentence) or (language == "tr" and _NEED_BEHIND.search(behind)):
            yield match.start(), f"{match[0]!r} is typed as what something needs; let a word of the vocabulary compute it"
        elif match[3] not in ("-", "\u00a0", "&nbsp;", "&#160;"):
            yield match.start(), f"{match[0]!r}: expected a no-break space (U+00A0) before GB"


def _signs(text: str, language: str) -> Iterator[tuple[int, str]]:
    for patterns, says in ((_PERCENT, "percent is written like"), (_SEPARATOR, "the decimal sign is"), (_GROUPS, "numbers are written like")):
        pattern, right = patterns[language]
        for match in pattern.finditer(text):
            yield match.start(), f"{match[0]!r}: here {says} {right}"
    for match in _APOSTROPHE.finditer(text):
        yield match.start(), f"{match[0]!r}: the apostrophe is ’ (U+2019)"


def _composed(page: Page) -> Iterator[tuple[int, str]]:
    if (composed := unicodedata.normalize("NFC", page.body)) != page.body:
        first = next(n for n, (ours, theirs) in enumerate(zip(page.body, composed + " ", strict=False)) if ours != theirs)
        yield first, f"{page.body[first : first + 2]!r}: one letter as several characters; save the text as Unicode NFC"


def _endings_on_calls(page: Page) -> Iterator[tuple[int, str]]:
    """Turkish endings follow how a number is spoken, which whoever writes the page cannot know."""
    for match in _ENDING_ON_CALL.finditer(page.code_free) if page.language == "tr" else ():
        yield match.start(), f"{match[0]!r}: no ending on a computed value; put a noun behind it that takes the ending"


def _endings(text: str, language: str) -> Iterator[tuple[int, str]]:
    for match in _ENDING_ON_UNIT.finditer(text) if language == "tr" else ():
        yield match.start(), f"{match[0]!r}: no ending on a unit or a percentage; put a noun behind it"


def _tone(page: Page) -> Iterator[tuple[int, str]]:
    """Turkish officialese: `-mektedir` more than once, `-dır` at the end of over a third of the sentences."""
    if page.language != "tr":
        return
    for match in list(_MEKTEDIR.finditer(page.prose))[1:]:
        yield match.start(), f"{match[0]!r}: -mektedir a second time; write the verb in the aorist"
    # An abbreviation or a decimal does not end a sentence.
    text = re.sub(r"\b(?:bkz|dk|sn|vb|örn)\.|(?<=\d)[.:](?=\d)", lambda match: " " * len(match[0]), page.prose)
    sentences = [match for match in _SENTENCE.finditer(text) if " " in match[0].strip()]
    stiff = [match for match in sentences if _COPULA.search(match[0])]
    if len(sentences) >= _FEWEST_SENTENCES and len(stiff) * 3 > len(sentences):
        says = f"{len(stiff)} of {len(sentences)} sentences end in -dır; at most a third may"
        yield stiff[0].end() - len(stiff[0][0].lstrip()), says


def load(root: Path) -> dict[str, list[Discouraged]]:
    """The discouraged forms and empty phrases by language. Raises `DataErrors` with every finding."""
    wrong: list[Finding] = []
    words: dict[str, list[Discouraged]] = {}
    for path, says in WORDS.items():
        document = yamlfile.read(root / path, path)
        for language, forms in document.value.items() if isinstance(document.value, dict) else ():
            if language not in CODES or not isinstance(forms, dict):
                expected = f"expected forms for {', '.join(CODES)}, got {quote(language)}"
                wrong.append(Finding(path, document.line(language), expected))
                continue
            for form, instead in forms.items():
                if not isinstance(instead, str) or not instead or not form.strip("*"):
                    wrong.append(Finding(path, document.line(language, form), f"{form}: expected what to write instead"))
                    continue
                core = form[1:].removesuffix("*")
                words.setdefault(language, []).append(Discouraged(core, f"{says}; write {instead}", _pattern(form)))
    if wrong:
        raise DataErrors(wrong)
    return words


def _pattern(form: str) -> re.Pattern[str]:
    """Whole words; a final `*` lets any ending follow; a small first letter may be a capital at the start of a sentence."""
    first, rest = form[0], re.escape(form[1:].removesuffix("*")).replace(r"\ ", r"[\s\u00a0]+")
    start = f"[{first}{first.upper()}{'İ' if first == 'i' else ''}]" if first.islower() else re.escape(first)
    return re.compile(rf"(?<![\w’-]){start}{rest}" + ("" if form.endswith("*") else r"(?![\w’-])"))
