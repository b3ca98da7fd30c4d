"""What feeds, search engines, assistants and networks read of the site: valid, complete, and the same as on the page."""

from __future__ import annotations

import html
import json
import re
import shutil
import struct
from email.utils import parsedate_to_datetime
from pathlib import Path
from xml.etree import ElementTree

import linked_data
import pytest
import yaml

from macros import frontmatter, site_record
from macros.findings import DataErrors
from macros.language import load
from tests import site_build
from tests.site_build import LOCALES, ROOT

ADDRESS = "https://vram-guide.example/"
ATOM = "{http://www.w3.org/2005/Atom}"


def pages_of(site: Path) -> list[Path]:
    return [file for locale in LOCALES for file in sorted((site / locale).rglob("*.html"))]


def meta(page: str, name: str) -> list[str]:
    return [html.unescape(value) for value in re.findall(rf'<meta (?:property|name)="{name}" content="([^"]*)"', page)]


def test_a_shared_link_shows_title_description_and_picture(site: Path) -> None:
    for file in pages_of(site):
        page = file.read_text(encoding="utf-8")
        place = file.relative_to(site).as_posix()
        address = f"{ADDRESS}{file.relative_to(site).parent.as_posix()}/"
        assert meta(page, "og:url") == [address] == re.findall(r'<link rel="canonical" href="([^"]*)"', page), place
        assert len(meta(page, "og:title")) == len(meta(page, "og:description")) == 1, place
        assert meta(page, "og:description")[0] == meta(page, "description")[0], place
        assert meta(page, "og:image") == [f"{ADDRESS}assets/images/share.png"], place
        assert sorted(meta(page, "og:locale") + meta(page, "og:locale:alternate")) == ["de_DE", "en_US", "tr_TR"], place
    page = (site / "de" / "lora-qlora-workstation" / "index.html").read_text(encoding="utf-8")
    assert meta(page, "og:type") == ["article"]
    assert meta((site / "de" / "index.html").read_text(encoding="utf-8"), "og:type") == ["website"]


def test_the_picture_has_the_size_that_is_said(site: Path) -> None:
    contents = (site / "assets" / "images" / "share.png").read_bytes()
    assert contents[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", contents[16:24]) == linked_data.PICTURE_SIZE == (1200, 630)
    assert len(contents) < 100_000


def test_feeds_are_valid(site: Path) -> None:
    for locale in LOCALES:
        channel = ElementTree.parse(site / locale / "feed.xml").getroot().find("channel")
        assert channel is not None
        for name in ("title", "link", "description", "language"):
            assert channel.findtext(name), (locale, name)
        itself = channel.find(f"{ATOM}link")
        assert itself is not None and itself.get("href") == f"{ADDRESS}{locale}/feed.xml"
        items = channel.findall("item")
        assert len({item.findtext("guid") for item in items}) == len(items) > 0
        for item in items:
            assert item.findtext("title") and item.findtext("description")
            assert parsedate_to_datetime(str(item.findtext("pubDate"))).year >= 2026
        feed = json.loads((site / locale / "feed.json").read_text(encoding="utf-8"))
        assert feed["version"] == "https://jsonfeed.org/version/1.1"
        assert feed["title"] == channel.findtext("title") and feed["language"] == locale
        assert feed["feed_url"] == f"{ADDRESS}{locale}/feed.json" and feed["home_page_url"] == f"{ADDRESS}{locale}/"
        assert [item["url"] for item in feed["items"]] == [item.findtext("link") for item in items]
        for item in feed["items"]:
            assert item["id"] and item["title"] and item["content_html"]
            assert None not in item.values()
            # The day of a build is not the day of a change.
            assert set(item) <= {"id", "url", "title", "content_html", "date_published", "date_modified"}
            assert "date_modified" not in item
        assert not list((site / locale).glob("feed-updated*"))
    titles = {json.loads((site / locale / "feed.json").read_text(encoding="utf-8"))["title"] for locale in LOCALES}
    assert len(titles) == len(LOCALES)


def test_lists_of_the_blog_speak_the_language(site: Path) -> None:
    for locale, reading in (("de", r"\d+\u00a0Min\. Lesezeit"), ("en", r"\d+\u00a0min read"), ("tr", r"\d+\u00a0dk\. okuma")):
        lists = [site / locale / "blog" / "index.html", site / locale / "blog" / "archive" / "2026" / "index.html"]
        lists += sorted((site / locale / "blog" / "category").rglob("index.html"))
        assert len(lists) >= 3
        for file in lists:
            page = file.read_text(encoding="utf-8")
            assert len(re.findall(rf"<span>{reading}</span>", page)) == page.count("md-post--excerpt") > 0, file
            assert "dakika okuma" not in page and ">in\n" not in page


READING = re.compile(r"<span>(\d+)\u00a0(?:Min\. Lesezeit|min read|dk\. okuma)</span>")


@pytest.mark.parametrize(("locale", "pace"), [("de", 179), ("en", 228), ("tr", 166)])
def test_the_reading_time_is_true_and_the_same_in_the_lists(site: Path, locale: str, pace: int) -> None:
    """Words per minute of texts read in each language (Trauzettel-Klosinski and Dietz 2012); tables and code are looked at, not read."""
    index = (site / locale / "blog" / "index.html").read_text(encoding="utf-8")
    excerpts = index.split('<article class="md-post md-post--excerpt">')[1:]
    assert len(excerpts) >= 4
    for excerpt in excerpts:
        (name,) = set(re.findall(r'href="([\w-]+)/"', excerpt))
        post = (site / locale / "blog" / name / "index.html").read_text(encoding="utf-8")
        said = READING.search(post)
        prose = post.partition('<div class="vg-article">')[2].partition('<aside class="vg-next"')[0]
        for tag in ("svg", "table", "pre"):
            prose = re.sub(rf"<{tag}\b.*?</{tag}>", " ", prose, flags=re.DOTALL)
        words = [word for word in html.unescape(re.sub(r"<[^>]+>", " ", prose)).split() if re.search(r"\w", word)]
        assert said and abs(int(said[1]) - len(words) / pace) <= max(0.75, 0.1 * len(words) / pace), (name, len(words))
        listed = READING.search(excerpt)
        assert listed and listed[1] == said[1], name


def test_assistants_get_a_list_of_all_pages(site: Path) -> None:
    text = (site / "llms.txt").read_text(encoding="utf-8")
    assert text.startswith("# VRAM Guide\n\n> ")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Deutsch", "English", "Türkçe"]
    addresses = re.findall(rf"^- \[.+\]\(({re.escape(ADDRESS)}[^)]+)\): .+$", text, re.MULTILINE)
    assert len(addresses) == len(set(addresses)) >= 3 * 15
    for address in addresses:
        assert (site / address.removeprefix(ADDRESS) / "index.html").is_file(), address
    assert "&#" not in text and "{" not in text


# Who runs the site

FILLED = """\
operator: {name: "A <b>, Inc.", address: "Street 1, 12345 Town", represented_by: ""}
contact: {email: "a@example.org", phone: ""}
host: {name: "Host Ltd", address: "", log_days: "7"}
call_to_action:
  guide:
    de: {text: "Karte mieten", link: "https://example.org/de"}
    en: {text: "Rent a card", link: "https://example.org/en"}
    tr: {text: "Kart kiralayın", link: "https://example.org/tr"}
"""


def test_nothing_is_made_up_about_the_operator() -> None:
    """As committed every field is empty, pages say so, and publishing is refused with the lines to fill in."""
    record = site_record.load(ROOT)
    assert {text for section in record.fields.values() for text in section.values()} == {""}
    assert record.offers == {}
    assert [str(finding).split(": ")[1].split(" is empty")[0] for finding in site_record.missing(record)] == [
        "operator.name", "operator.address", "contact.email",
    ]
    assert site_record.operator(load("de"), record) == '<p class="vg-missing">Wer diese Website betreibt, ist noch nicht eingetragen.</p>'


def test_the_legal_pages_say_what_is_entered(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / site_record.PATH).write_text(FILLED, encoding="utf-8")
    record = site_record.load(tmp_path)
    assert site_record.missing(record) == []
    assert site_record.operator(load("en"), record) == (
        '<address class="vg-operator"><strong>A &lt;b&gt;, Inc.</strong><br>Street 1<br>12345 Town<br>'
        'Email: <a href="mailto:a@example.org">a@example.org</a></address>'
    )
    assert site_record.host(load("en"), record) == "<p>The pages are served by Host Ltd. Logs are deleted there after 7 days.</p>"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("operator:", "operater:", "1: operater: unknown key 'operater'; did you mean 'operator'?"),
        ("phone", "fone", "2: contact.fone: unknown key; did you mean 'phone'?"),
        ("a@example.org", "example.org", "2: contact.email: expected an address like name@example.org, got 'example.org'"),
        ('"7"', "a week", "3: host.log_days: expected a number of days, got 'a week'"),
        ("https://example.org/en", "javascript:alert(1)",
         "7: call_to_action.guide.en.link: expected an address like https://example.org/, got 'javascript:alert(1)'"),
        ("    tr: {text", "    fr: {text", "5: call_to_action.guide: expected a text and a link for each of de, en, tr"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_record_of_the_site_is_found(old: str, new: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / site_record.PATH).write_text(FILLED.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(DataErrors) as caught:
        site_record.load(tmp_path)
    assert f"data/site.yml:{message}" in [str(finding) for finding in caught.value.findings]


def test_an_article_ends_with_what_the_operator_offers_or_with_the_measurements(site: Path, sample_project: Path, tmp_path: Path) -> None:
    page = (site / "en" / "lora-qlora-workstation" / "index.html").read_text(encoding="utf-8")
    assert 'href="../accuracy/#add-measurement"' in page
    assert ('href="../calculator/"' in page.partition('class="vg-next"')[2]) == (ROOT / "docs" / "en" / "calculator.md").exists()
    project = Path(shutil.copytree(sample_project, tmp_path / "project"))
    (project / "data" / "site.yml").write_text(FILLED, encoding="utf-8")
    built = site_build.build(project, tmp_path / "site")
    ends = {
        name: (built / "tr" / name / "index.html").read_text(encoding="utf-8").partition('class="vg-next"')[2].partition("</aside>")[0]
        for name in ("article", "second")
    }
    assert '<a class="vg-next__link" href="https://example.org/tr">Kart kiralayın</a>' in ends["article"]
    assert "example.org" not in ends["second"]  # another category


def test_every_page_leads_to_who_runs_the_site(site: Path) -> None:
    for file in pages_of(site):
        page = file.read_text(encoding="utf-8")
        assert re.search(r'href="[./]*legal/"|href="\./"', page) and re.search(r'href="[./]*privacy/"|href="\./"', page), file


def test_categories_have_names_everywhere() -> None:
    """Hooks, check and messages know the same categories."""
    from site_pages import CATEGORIES

    assert set(CATEGORIES) == set(frontmatter.categories())
    for locale in LOCALES:
        named = yaml.safe_load((ROOT / "macros" / "messages" / f"{locale}.yml").read_text(encoding="utf-8"))
        assert {key.removeprefix("category.") for key in named if key.startswith("category.")} == set(CATEGORIES)
