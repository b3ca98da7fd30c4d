"""The real site as built: languages that agree, links that lead somewhere, nothing from other hosts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit
from xml.etree import ElementTree

import pytest

from tests.site_build import LOCALES

ADDRESS = "https://vram-guide.example/"
LOADING = {("script", "src"), ("img", "src"), ("source", "src"), ("iframe", "src"), ("video", "src"), ("object", "data"), ("form", "action")}
LOADING_RELATIONS = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "modulepreload", "manifest", "dns-prefetch"}


@dataclass
class Page(HTMLParser):
    """What the tests ask of one page."""

    path: str
    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)
    headings: list[str | None] = field(default_factory=list)
    alternates: dict[str, str] = field(default_factory=dict)
    canonical: str | None = None
    policy: str = ""

    def __post_init__(self) -> None:
        HTMLParser.__init__(self)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        known = dict(attributes)
        if known.get("id"):
            self.ids.add(known["id"])
        if tag in ("a", "area") and known.get("href"):
            self.links.append(known["href"])
        for name, value in attributes:
            if (tag, name) in LOADING and value:
                self.loaded.append(value)
        if tag == "data" and "figure" in (known.get("class") or "").split():
            self.figures.append(known.get("value") or "")
        if tag in ("h2", "h3"):
            self.headings.append(known.get("id"))
        if tag == "meta" and known.get("http-equiv") == "Content-Security-Policy":
            self.policy = known["content"] or ""
        if tag == "link":
            relations = set((known.get("rel") or "").split())
            if relations & LOADING_RELATIONS:
                self.loaded.append(known["href"] or "")
            if "alternate" in relations and known.get("hreflang"):
                self.alternates[known["hreflang"]] = known["href"] or ""
            if "canonical" in relations:
                self.canonical = known["href"]


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    found = {}
    for file in sorted(site.rglob("*.html")):
        name = file.relative_to(site).as_posix()
        page = Page(name)
        page.feed(file.read_text(encoding="utf-8"))
        found[name] = page
    return found


def of_locale(pages: dict[str, Page], locale: str) -> dict[str, Page]:
    return {name.removeprefix(f"{locale}/"): page for name, page in pages.items() if name.startswith(f"{locale}/")}


def shared(pages: dict[str, Page]) -> Iterator[tuple[str, list[Page]]]:
    """The pages that exist in every language, each with its three versions."""
    by_locale = [of_locale(pages, locale) for locale in LOCALES]
    for name in by_locale[0]:
        if all(name in versions for versions in by_locale):
            yield name, [versions[name] for versions in by_locale]


def target(page: str, link: str) -> tuple[str, str] | None:
    """The file and the anchor that a link of a page leads to, or None for another host."""
    absolute = urljoin(f"{ADDRESS}{page}", link)
    if not absolute.startswith(ADDRESS):
        return None
    parts = urlsplit(absolute)
    path = unquote(parts.path).lstrip("/")
    return (f"{path}index.html" if path == "" or path.endswith("/") else path), unquote(parts.fragment)


def test_every_article_is_there_in_every_language(pages: dict[str, Page]) -> None:
    names = [{name for name in of_locale(pages, locale) if not name.startswith("blog/category/")} for locale in LOCALES]
    assert names[0] == names[1] == names[2]
    assert {"index.html", "articles/index.html", "lora-qlora-workstation/index.html", "blog/index.html"} <= names[0]


def test_nothing_of_a_template_is_left(site: Path) -> None:
    left = []
    for file in [*site.rglob("*.html"), *site.rglob("*.json"), *site.rglob("*.xml")]:
        # The guide for authors shows calls as code.
        text = re.sub(r"<code.*?</code>", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
        if "{{" in text or "{%" in text:
            left.append(file.relative_to(site).as_posix())
    assert left == []


def test_figures_are_equal_in_all_languages(pages: dict[str, Page]) -> None:
    """Whatever their order: a Turkish sentence may name them the other way round."""
    different = {
        name: [len(version.figures) for version in versions]
        for name, versions in shared(pages)
        if not sorted(versions[0].figures) == sorted(versions[1].figures) == sorted(versions[2].figures)
    }
    assert different == {}
    assert any(versions[0].figures for _, versions in shared(pages)), "no page carries a computed figure"


def test_anchors_are_equal_in_all_languages(pages: dict[str, Page]) -> None:
    different = [
        name for name, versions in shared(pages)
        if not name.startswith(("blog/", "tags/")) and not versions[0].headings == versions[1].headings == versions[2].headings
    ]
    assert different == []


def test_hreflang_is_exact(pages: dict[str, Page]) -> None:
    """Each page names itself and its translations, these name it back, and x-default is the root page."""
    wrong = []
    for name, page in pages.items():
        if not page.alternates:
            continue
        codes = set(page.alternates)
        if not codes <= {*LOCALES, "x-default"} or page.alternates.get("x-default") != ADDRESS:
            wrong.append((name, page.alternates))
        if page.canonical not in page.alternates.values():
            wrong.append((name, "does not name itself"))
        for code in codes - {"x-default"}:
            file, _ = target(name, page.alternates[code]) or ("", "")
            if file not in pages or not file.startswith(f"{code}/") or pages[file].alternates != page.alternates and name != "index.html":
                wrong.append((name, code, file))
    assert wrong == []
    for name, versions in shared(pages):
        if not name.startswith("blog/archive/") and not name.startswith("blog/category/") and "/page/" not in name:
            assert set(versions[0].alternates) == {*LOCALES, "x-default"}, name


def test_links_and_anchors_lead_somewhere(pages: dict[str, Page], site: Path) -> None:
    dead = []
    for name, page in pages.items():
        for link in [*page.links, *page.loaded]:
            if link.startswith(("mailto:", "data:", "javascript:")):
                continue
            found = target(name, link)
            if found is None:
                continue
            file, anchor = found
            if not (site / file).is_file():
                dead.append((name, link))
            elif anchor and file.endswith(".html") and anchor not in pages[file].ids and not anchor.startswith("__"):
                dead.append((name, link))
    assert dead == []


def test_nothing_is_loaded_from_another_host(pages: dict[str, Page], site: Path) -> None:
    foreign = [(name, link) for name, page in pages.items() for link in page.loaded
               if not link.startswith("data:") and target(name, link) is None]
    for sheet in site.rglob("*.css"):
        for link in re.findall(r"(?:url\(|@import\s+)['\"]?(https?:)?//[^)'\"]+", sheet.read_text(encoding="utf-8")):
            foreign.append((sheet.name, link))
    assert foreign == []


def test_policy_allows_no_inline_scripts(pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        assert page.policy, f"{name} has no Content-Security-Policy"
        scripts = next(part for part in page.policy.split(";") if part.strip().startswith("script-src"))
        assert "unsafe" not in scripts and "http" not in scripts and "*" not in scripts, name


def test_feeds_carry_the_posts(site: Path) -> None:
    for locale in LOCALES:
        feed = ElementTree.parse(site / locale / "feed.xml").getroot().find("channel")
        assert feed is not None
        assert feed.findtext("language") == locale
        links = [item.findtext("link") for item in feed.findall("item")]
        assert links and all(str(link).startswith(f"{ADDRESS}{locale}/blog/") for link in links)
        assert json.loads((site / locale / "feed.json").read_text(encoding="utf-8"))["items"]


def test_sitemaps_list_pages_that_exist(site: Path, pages: dict[str, Page]) -> None:
    names = {"s": "http://www.sitemaps.org/schemas/sitemap/0.9"}
    index = ElementTree.parse(site / "sitemap.xml").getroot()
    maps = [place.text for place in index.findall("s:sitemap/s:loc", names)]
    assert maps == [f"{ADDRESS}{locale}/sitemap.xml" for locale in LOCALES]
    for locale in LOCALES:
        places = ElementTree.parse(site / locale / "sitemap.xml").getroot().findall("s:url/s:loc", names)
        files = [(target("", str(place.text)) or ("", ""))[0] for place in places]
        assert files and all(file in pages for file in files)


def test_sitemaps_list_every_page_with_its_translations(site: Path, pages: dict[str, Page]) -> None:
    names = {"s": "http://www.sitemaps.org/schemas/sitemap/0.9", "x": "http://www.w3.org/1999/xhtml"}
    for locale in LOCALES:
        listed = ElementTree.parse(site / locale / "sitemap.xml").getroot().findall("s:url", names)
        alternates = {
            str(entry.findtext("s:loc", namespaces=names)): {str(link.get("hreflang")): str(link.get("href")) for link in entry.findall("x:link", names)}
            for entry in listed
        }
        assert len(alternates) == len(listed)
        assert alternates == {page.canonical: page.alternates for page in of_locale(pages, locale).values() if page.canonical}
        for entry in listed:
            assert re.fullmatch(r"20\d\d-\d\d-\d\d", entry.findtext("s:lastmod", "2026-12-01", names))


def test_the_home_page_answers_and_leads_on(site: Path) -> None:
    """Three figures first, then which model fits a card, what a model needs, and what came out last."""
    for locale in LOCALES:
        page = (site / locale / "index.html").read_text(encoding="utf-8")
        text = page.partition('class="vg-home"')[2]
        first, _, rest = text.partition('id="fits"')
        assert first.partition("<svg")[0].count('<data class="figure"') >= 3
        fits, _, rest = rest.partition('id="needs"')
        needs, _, rest = rest.partition('id="newest"')
        assert fits.count("vg-verdict--") >= 20 and needs.count('<data class="figure"') >= 15
        assert rest.count('class="vg-list__item"') == 5
        assert 'href="calculator/"' in text


def test_the_site_has_no_build_files(site: Path) -> None:
    """The folder of templates holds more than the theme's files; none of it is published."""
    assert not list(site.rglob("*.yml")) and not list(site.rglob("*.py"))
    assert not [path for path in site.rglob("root") if path.is_dir()]


def test_the_blog_calls_categories_by_their_name(site: Path) -> None:
    for locale, name in (("de", "Grundlagen"), ("en", "Basics"), ("tr", "Temel bilgiler")):
        page = (site / locale / "blog" / "index.html").read_text(encoding="utf-8")
        assert set(re.findall(r'<a href="category/basics/">([^<]*)</a>', page)) == {name}
