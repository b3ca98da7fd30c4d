"""The hooks of the build, on a small sample project: drafts, previews, missing and stale translations, same bytes twice."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import furniture
import locales
import pytest
import search_index
import security
import yaml

from tests import site_build
from tests.site_build import LOCALES, ROOT, front, run_mkdocs, write


@pytest.fixture
def project(sample_project: Path, tmp_path: Path) -> Path:
    """A copy of the sample to change."""
    return Path(shutil.copytree(sample_project, tmp_path / "project"))


def test_drafts_are_left_out(sample_site: Path) -> None:
    for file in sample_site.rglob("*"):
        if file.suffix in (".html", ".xml", ".json"):
            assert "HELD-BACK" not in file.read_text(encoding="utf-8"), file


def test_a_missing_translation_has_no_hreflang(sample_site: Path) -> None:
    page = (sample_site / "de" / "only-two" / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'<link rel="alternate " hreflang="([\w-]+)"', page) == ["de", "en", "x-default"]
    menu = re.findall(r'href="([^"]+)" hreflang="(\w+)" lang="\w+" target="_self"', page)
    assert menu == [("./", "de"), ("../../en/only-two/", "en"), ("../../tr/", "tr")]


def test_menu_keeps_article_and_post(sample_site: Path) -> None:
    for page in ("article", "blog/first"):
        up = "../" * (page.count("/") + 2)
        text = (sample_site / "tr" / page / "index.html").read_text(encoding="utf-8")
        assert f'href="{up}de/{page}/" hreflang="de"' in text


def test_articles_are_listed_in_the_same_order(sample_site: Path) -> None:
    for locale in LOCALES:
        page = (sample_site / locale / "articles" / "index.html").read_text(encoding="utf-8")
        titles = re.findall(r'vg-list__title"><a href="\.\./([\w./-]+)/"', page)
        models = ["models/llama-3.1-8b"]
        assert titles == (["article", "second", *models] if locale == "tr" else ["article", "second", "only-two", *models])
        assert re.findall(r'<h2 id="(\w+)">', page) == ["guide", "practice", "models"]


def test_a_model_page_stands_in_the_navigation_behind_the_list_of_models(sample_site: Path) -> None:
    page = (sample_site / "tr" / "models" / "llama-3.1-8b" / "index.html").read_text(encoding="utf-8")
    trail = re.search(r'<ol class="vg-path__list">(.*?)</ol>', page, re.DOTALL)
    assert trail is not None
    assert re.findall(r"<li>(?:<a[^>]*>)?([^<]+)", trail[1]) == ["Ana sayfa", "Modeller"]


def test_the_home_page_names_what_came_out_last(sample_site: Path) -> None:
    """A review counts where nothing else is said; what has no day at all is not news."""
    page = (sample_site / "de" / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'vg-list__title"><a href="([\w./-]+)/"', page) == ["article", "models/llama-3.1-8b", "blog/first"]
    assert re.findall(r'<time datetime="([\d-]+)">', page) == ["2026-12-01", "2026-11-30", "2026-11-20"]


def test_furniture_of_an_article(sample_site: Path) -> None:
    page = (sample_site / "de" / "article" / "index.html").read_text(encoding="utf-8")
    for words in ("Alle Artikel", "Redaktion VRAM Guide", "1\u00a0Min. Lesezeit", "Geprüft am 1.\u00a0Dezember 2026"):
        assert words in page
    page = (sample_site / "tr" / "article" / "index.html").read_text(encoding="utf-8")
    assert "Son gözden geçirme: 1\u00a0Aralık 2026" in page
    assert page.count("<h1") == 1


def test_tags_are_listed_where_there_are_any(sample_site: Path, site: Path) -> None:
    for locale in LOCALES:
        assert "LoRA" in (sample_site / locale / "tags" / "index.html").read_text(encoding="utf-8")
        tagged = any(re.search("^tags:", path.read_text("utf-8"), re.MULTILINE) for path in (ROOT / "docs" / locale).rglob("*.md"))
        assert (site / locale / "tags").exists() == tagged


def test_root_page_and_404_speak_all_languages(sample_site: Path) -> None:
    for name in ("index.html", "404.html"):
        page = (sample_site / name).read_text(encoding="utf-8")
        assert re.findall(r'<li lang="(\w+)">', page) == list(LOCALES)
    root = (sample_site / "index.html").read_text(encoding="utf-8")
    assert [name for name in ("Deutsch", "English", "Türkçe") if name in root] == ["Deutsch", "English", "Türkçe"]
    assert not (sample_site / "de" / "404.html").exists()


def test_two_builds_are_equal_byte_for_byte(sample_project: Path, sample_site: Path, tmp_path: Path) -> None:
    again = site_build.build(sample_project, tmp_path / "again", PYTHONHASHSEED="7", TZ="Asia/Tokyo")
    names = sorted(path.relative_to(sample_site) for path in sample_site.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(again) for path in again.rglob("*") if path.is_file())
    assert [str(name) for name in names if (sample_site / name).read_bytes() != (again / name).read_bytes()] == []


def test_a_stale_translation_says_so(project: Path, tmp_path: Path) -> None:
    source = project / "docs" / "de" / "article.md"
    blob = subprocess.run(["git", "hash-object", str(source)], capture_output=True, text=True, check=True).stdout.strip()
    for locale, known in (("en", blob), ("tr", "0" * 40)):
        path = project / "docs" / locale / "article.md"
        path.write_text(path.read_text("utf-8").replace("category:", f"translation: {{from: de, blob: {known}}}\ncategory:"), "utf-8")
    for locale in ("de", "en"):  # any language may be the source
        path = project / "docs" / locale / "second.md"
        path.write_text(path.read_text("utf-8").replace("category:", f"translation: {{from: tr, blob: {'0' * 40}}}\ncategory:"), "utf-8")
    site = site_build.build(project, tmp_path / "site")
    assert "vg-stale" not in (site / "en" / "article" / "index.html").read_text(encoding="utf-8")
    assert "vg-stale" not in (site / "tr" / "second" / "index.html").read_text(encoding="utf-8")
    for place, says in (
        ("tr/article", "Bu sayfanın Türkçe sürümü kaynağından (Deutsch) daha eski"),
        ("en/second", "The English version of this page is older than its source (Türkçe)"),
        ("de/second", "Die deutsche Fassung dieser Seite ist älter als ihre Vorlage (Türkçe)"),
    ):
        page = (site / place / "index.html").read_text(encoding="utf-8")
        assert f'<aside class="vg-stale" role="note">{says}' in page, place


def test_preview_is_marked_and_not_for_search_engines(preview_site: Path) -> None:
    site = preview_site
    for file in site.rglob("*.html"):
        page = file.read_text(encoding="utf-8")
        assert '<meta name="robots" content="noindex' in page, file
        assert "Pull Request 12, Commit abc" in page or "pull request 12, commit abc" in page, file
        for gone in ('rel="canonical"', "hreflang=\"x-default\"", "feed.xml", "application/rss+xml"):
            assert gone not in page, (file, gone)
    assert not list(site.rglob("feed*")) and not list(site.rglob("sitemap.xml*")) and not list(site.rglob("_*"))
    assert (site / "robots.txt").read_text(encoding="utf-8").split("\n")[1] == "Disallow: /"
    assert 'href="/previews/pr-12/de/"' in (site / "404.html").read_text(encoding="utf-8")


def test_repository_address_gives_ways_to_mend_a_page(project: Path, tmp_path: Path) -> None:
    site = site_build.build(project, tmp_path / "site", REPOSITORY_URL="https://git.example.org/guide/")
    page = (site / "tr" / "article" / "index.html").read_text(encoding="utf-8")
    assert 'href="https://git.example.org/guide/edit/main/docs/tr/article.md"' in page
    assert 'href="https://git.example.org/guide/issues/new"' in page


@pytest.mark.parametrize("strict", [True, False])
def test_mistakes_in_any_language_fail_the_build_with_all_of_them_named(project: Path, tmp_path: Path, strict: bool) -> None:
    write(project, "de/second.md", front("Zwei", category="practice"), "Text.", "", "{{ no_such_word(1) }}", "")
    write(project, "tr/second.md", front("İki", category="practice"), "{{ no_such_word(2) }}", "")
    done = run_mkdocs(project, "build", "--site-dir", str(tmp_path / "site"), *(["--strict"] if strict else []))
    assert done.returncode == 1
    said = done.stdout + done.stderr
    assert "docs/de/second.md:9: " in said and "docs/tr/second.md:7: " in said
    assert "Traceback" not in said


def test_a_page_that_only_one_folder_names_in_a_link_fails_the_build(project: Path, tmp_path: Path) -> None:
    write(project, "en/second.md", front("Two", category="practice"), "[gone](no-such-page.md)", "")
    done = run_mkdocs(project, "build", "--strict", "--site-dir", str(tmp_path / "site"))
    assert done.returncode == 1 and "no-such-page.md" in done.stdout + done.stderr


def test_search_index_carries_folded_words(sample_site: Path) -> None:
    index = json.loads((sample_site / "tr" / "search" / "search_index.json").read_text(encoding="utf-8"))
    assert index["config"]["pipeline"] == ["stopWordFilter"] and index["config"]["lang"] == ["tr"]
    entries = {entry["location"]: entry for entry in index["docs"]}
    assert {"isik", "olcum", "calisiyor", "istanbul"} <= set(entries["article/#short-answer"]["text_folded"].split())
    assert "isik" in entries["article/"]["title_folded"].split() and entries["article/"]["description"].startswith("IŞIK ve ölçüm:")
    assert [entries[place].get("boost", 1) for place in ("article/#short-answer", "models/llama-3.1-8b/", "", "blog/first/")] == [1, 0.5, 0.3, 0.3]


@pytest.mark.parametrize(
    ("word", "locale", "typed"),
    [
        ("Häuser", "de", {"haeuser", "hauser"}),
        ("Straße", "de", {"strasse"}),
        ("GRÖSSE", "de", {"groesse", "grosse"}),
        ("ışık", "tr", {"isik", "işik"}),
        ("IŞIK", "tr", {"ışık", "isik"}),
        ("İstanbul", "tr", {"istanbul"}),
        ("ölçüm", "tr", {"olcum"}),
    ],
)
def test_spellings_that_readers_type(word: str, locale: str, typed: set[str]) -> None:
    assert typed <= search_index.spellings(word, locale)


def test_an_amount_is_one_word_too() -> None:
    assert search_index.folded("<b>24&nbsp;GB</b>, 4 bits, 16 bit", "en") == "16bit 24gb"


def test_english_needs_no_other_spellings() -> None:
    assert search_index.spellings("naïve", "en") == set()


def test_reading_time_counts_prose_only() -> None:
    table = "<table><tr><td>" + "word " * 5000 + "</td></tr></table><svg><title>" + "word " * 5000 + "</title></svg>"
    assert furniture.reading_minutes("<p>" + "word " * 2280 + "</p>" + table, "en") == 10
    assert furniture.reading_minutes("<p>kurz</p>", "de") == 1


def test_blob_id_is_that_of_git(tmp_path: Path) -> None:
    # The well-known id of the empty file, and of "hello\n".
    (tmp_path / "a").write_bytes(b"")
    (tmp_path / "b").write_bytes(b"hello\n")
    assert furniture.blob_id(tmp_path / "a") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    assert furniture.blob_id(tmp_path / "b") == "ce013625030ba8dba906f756967f9e9ca394464a"


@pytest.mark.parametrize(("title", "slug"), [("Işık ve İş", "isik-ve-is"), ("Größe", "groesse"), ("Ölçüm", "oelcuem"), ("KI & Recht", "ki-recht")])
def test_addresses_are_ascii(title: str, slug: str) -> None:
    assert locales._slug(title, "-") == slug


def test_policy_hashes_only_scripts_that_run() -> None:
    # The hash of `alert(1)` as browsers compute it.
    page = '<script>alert(1)</script><script src="a.js"></script><script id="x" type="application/json">{}</script>'
    assert "script-src 'self' 'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='; " in security.policy(page)


def test_words_of_the_frame_are_the_same_in_all_languages() -> None:
    catalogues = [yaml.safe_load((ROOT / "overrides" / "messages" / f"{locale}.yml").read_text("utf-8")) for locale in LOCALES]
    assert list(catalogues[0]) == list(catalogues[1]) == list(catalogues[2])
    for key in catalogues[0]:
        slots = [set(re.findall(r"{(\w+)}", catalogue[key])) for catalogue in catalogues]
        assert slots[0] == slots[1] == slots[2], key
