"""The JSON-LD of every page: valid by schema.org's own definitions, with what search engines ask for, and equal to what the page shows."""

from __future__ import annotations

import json
import re
import shutil
from datetime import date
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import linked_data
import pytest

from tests import site_build
from tests.site_build import LOCALES, ROOT

ADDRESS = "https://vram-guide.example/"

SCHEMA = json.loads((ROOT / "tests" / "recorded" / "schema_org.json").read_text(encoding="utf-8"))

# What Google's documentation of rich results asks of each type, or recommends.
REQUIRED: dict[str, tuple[str, ...]] = {
    "Article": ("headline", "description", "inLanguage", "image", "author", "publisher", "mainEntityOfPage", "dateModified"),
    "BlogPosting": ("headline", "description", "inLanguage", "image", "author", "publisher", "mainEntityOfPage", "datePublished"),
    "BreadcrumbList": ("itemListElement",),
    "ListItem": ("position", "name", "item"),
    "FAQPage": ("mainEntity",),
    "Question": ("name", "acceptedAnswer"),
    "Answer": ("text",),
    "Organization": ("name", "url"),
    "ImageObject": ("url",),
    "WebSite": ("name", "url"),
    "Dataset": ("name", "description"),
    "DataDownload": ("contentUrl", "encodingFormat"),
}


def data_of(file: Path) -> list[dict[str, Any]]:
    """The JSON-LD of a page."""
    scripts = re.findall(r'<script type="application/ld\+json">(.*?)</script>', file.read_text(encoding="utf-8"), re.DOTALL)
    return [json.loads(script) for script in scripts]


def mistakes(thing: dict[str, Any], place: str) -> list[str]:
    """What schema.org does not know of a thing, or takes in another form; what search engines would miss."""
    kind = thing["@type"]
    place = f"{place}.{kind}"
    found = [f"{place} lacks {name}" for name in REQUIRED.get(kind, ()) if not thing.get(name)]
    ancestors = set(SCHEMA["types"][kind])
    for name, value in thing.items():
        if name.startswith("@"):
            continue
        definition = SCHEMA["properties"].get(name, {"of": [], "takes": []})
        if not ancestors & set(definition["of"]):
            found.append(f"{place}: schema.org has no {name}")
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, dict):
                found += mistakes(part, f"{place}.{name}")
                right = bool(set(SCHEMA["types"][part["@type"]]) & set(definition["takes"]))
            else:
                right = any(fits(part, form) for form in definition["takes"])
            if not right:
                found.append(f"{place}.{name}: {part!r} is none of {definition['takes']}")
    return found


def fits(value: object, form: str) -> bool:
    """Whether a plain value has the form of one of schema.org's data types."""
    if form in ("Integer", "Number"):
        return isinstance(value, int) and not isinstance(value, bool)
    if form == "Boolean":
        return isinstance(value, bool)
    if not isinstance(value, str):
        return False
    if form == "Date":
        return bool(re.fullmatch(r"\d{4}-\d\d-\d\d", value)) and bool(date.fromisoformat(value))
    return form == "Text" or form == "URL" and value.startswith(ADDRESS)


def pages_of(site: Path) -> list[Path]:
    return [file for locale in LOCALES for file in sorted((site / locale).rglob("*.html"))]


def test_linked_data_is_valid_on_every_page(site: Path) -> None:
    kinds: dict[str, int] = {}
    for file in pages_of(site):
        place = file.relative_to(site).as_posix()
        things = data_of(file)
        assert things, f"{place} says nothing"
        for thing in things:
            assert thing["@context"].rstrip("/") == "https://schema.org"
            assert mistakes(thing, place) == []
            kinds[thing["@type"]] = kinds.get(thing["@type"], 0) + 1
    assert {"Article", "BlogPosting", "BreadcrumbList", "FAQPage", "WebSite", "Dataset"} <= set(kinds)
    assert kinds["WebSite"] == kinds["Dataset"] == len(LOCALES)


@pytest.mark.parametrize(
    ("change", "mistake"),
    [
        ({"headLine": "x"}, "x.Article: schema.org has no headLine"),
        ({"datePublished": "1.12.2026"}, "x.Article.datePublished: '1.12.2026' is none of ['Date', 'DateTime']"),
        ({"author": "me"}, "x.Article.author: 'me' is none of ['Organization', 'Person']"),
        ({"acceptedAnswer": {"@type": "Answer", "text": "x"}}, "x.Article: schema.org has no acceptedAnswer"),
        ({"publisher": {"@type": "WebSite", "name": "x", "url": ADDRESS}},
         "x.Article.publisher: {'@type': 'WebSite', 'name': 'x', 'url': 'https://vram-guide.example/'} is none of ['Organization', 'Person']"),
    ],
)  # fmt: skip
def test_the_definitions_find_what_is_wrong(change: dict[str, Any], mistake: str) -> None:
    assert mistake in mistakes({"@type": "Article", "headline": "x", **change}, "x")


def test_a_trail_leads_from_the_home_page_to_the_page_itself(site: Path) -> None:
    for file in pages_of(site):
        for thing in data_of(file):
            if thing["@type"] == "BreadcrumbList":
                items = thing["itemListElement"]
                places = [item["item"]["@id"] for item in items]
                assert [item["position"] for item in items] == list(range(1, len(items) + 1))
                assert places[0] == f"{ADDRESS}{file.relative_to(site).parts[0]}/"
                assert places[-1] == f"{ADDRESS}{file.relative_to(site).parent.as_posix()}/"
                assert len(set(places)) == len(items), file
                for place in places:
                    assert (site / place.removeprefix(ADDRESS) / "index.html").is_file(), place


class _Shown(HTMLParser):
    """The questions and answers that a page shows, as a reader sees them; with `None` for an answer that is more than text."""

    _BLOCKS = frozenset({"p", "li", "ul", "ol", "div", "h3", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.pairs: list[list[str]] = []
        self.more: set[int] = set()
        self._inside = self._hidden = False
        self._part = 1

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        known = dict(attributes)
        if tag == "h2" or known.get("class") in ("vg-not-advice", "vg-units", "vg-next"):
            self._inside = known.get("id") == "faq"
        if tag == "h3" and self._inside:
            self.pairs.append(["", ""])
            self._part = 0
        if tag in ("figure", "table", "pre") and self._inside:
            self.more.add(len(self.pairs) - 1)
        self._hidden = self._hidden or tag == "a" and known.get("class") == "headerlink"
        self._block(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self._hidden = False
        if tag == "h3":
            self._part = 1
        self._block(tag)

    def _block(self, tag: str) -> None:
        if tag in self._BLOCKS:
            self.handle_data(" ")

    def handle_data(self, data: str) -> None:
        if self._inside and self.pairs and not self._hidden:
            self.pairs[-1][self._part] += data


def test_questions_and_answers_are_those_that_the_page_shows(site: Path) -> None:
    count = 0
    for file in pages_of(site):
        shown = _Shown()
        shown.feed(file.read_text(encoding="utf-8"))
        visible = [tuple(re.sub(r"[ \t\n]+", " ", part).strip(" ") for part in pair) for pair in shown.pairs]
        said = [
            (question["name"], question["acceptedAnswer"]["text"])
            for thing in data_of(file) if thing["@type"] == "FAQPage" for question in thing["mainEntity"]
        ]
        assert said == [pair for number, pair in enumerate(visible) if number not in shown.more], file
        assert all(question and answer for question, answer in said), file
        count += len(said)
    assert count >= 3 * 40


def test_questions_end_with_their_section_and_are_left_out_with_a_table() -> None:
    page = (
        '<h2 id="one">A</h2><h3 id="x">Not me?</h3><p>No.</p><h2 id="faq">FAQ</h2>'
        '<h3 id="a">Is <code>r</code> &lt; 8 enough?<a class="headerlink" href="#a">¶</a></h3><p>It takes <data value="1">1\u00a0GB</data>-ish'
        ' [<a href="article:x.md">there</a>].</p><ul><li>One</li><li>two.</li></ul>'
        '<h3 id="t">Which?</h3><p>These:</p><figure class="vg-table"><table><tr><td>no</td></tr></table></figure>'
        '<h3 id="b">And now?</h3><p>Done.</p><p class="vg-not-advice">No advice.</p><h2 id="sources">S</h2><h3 id="y">Not me either?</h3><p>No.</p>'
    )
    assert linked_data.questions(page) == [("Is r < 8 enough?", "It takes 1\u00a0GB-ish [there]. One two."), ("And now?", "Done.")]


def test_nothing_in_a_title_can_end_the_script(sample_project: Path, tmp_path: Path) -> None:
    project = Path(shutil.copytree(sample_project, tmp_path / "project"))
    site_build.write(project, "en/second.md", site_build.front("</script><b>x</b>", category="practice", standfirst="x", reviewed="2026-12-01"), "Text.")
    page = site_build.build(project, tmp_path / "site") / "en" / "second" / "index.html"
    assert any(thing.get("headline") == "</script><b>x</b>" for thing in data_of(page))
