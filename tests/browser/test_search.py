"""Search as readers type it: German without umlauts, Turkish without dots and hooks, on a site with one word per page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests import site_build
from tests.browser.conftest import hosted

WORDS = {
    "de": ["Häuser", "Straße", "Größe", "Quantisierung", "Speicher-Reserve"],
    "tr": ["ışık", "IŞIK", "İstanbul", "çalışıyor", "ölçüm", "kitaplar"],
}
QUERIES = [
    ("de", "haus", "Häuser"), ("de", "Haeuser", "Häuser"), ("de", "hauser", "Häuser"), ("de", "Häuser", "Häuser"), ("de", "häus", "Häuser"),
    ("de", "Strasse", "Straße"), ("de", "Straße", "Straße"), ("de", "Groesse", "Größe"), ("de", "grosse", "Größe"), ("de", "größe", "Größe"),
    ("de", "quantis", "Quantisierung"), ("de", "Reserve", "Speicher-Reserve"),
    ("tr", "isik", "ışık"), ("tr", "isik", "IŞIK"), ("tr", "ISIK", "ışık"), ("tr", "ışık", "IŞIK"), ("tr", "IŞIK", "IŞIK"), ("tr", "Işık", "ışık"),
    ("tr", "Istanbul", "İstanbul"), ("tr", "istanbul", "İstanbul"), ("tr", "İstanbul", "İstanbul"),
    ("tr", "calisiyor", "çalışıyor"), ("tr", "olcum", "ölçüm"), ("tr", "ölçüm", "ölçüm"), ("tr", "kitap", "kitaplar"),
]


@pytest.fixture(scope="module")
def search_host(sample_project: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    project = Path(shutil.copytree(sample_project, tmp_path_factory.mktemp("search") / "project"))
    for locale in site_build.LOCALES:
        for number in range(6):
            words = WORDS.get(locale, [])
            word = words[number] if number < len(words) else "xyz"
            site_build.write(project, f"{locale}/word-{number}.md", site_build.front(f"Seite {number}", category="practice"), f"qq {word} qq.\n")
    site = site_build.build(project, project.parent / "site")
    with hosted(site) as address:
        yield address


@pytest.fixture(scope="module")
def search_page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    yield context.new_page()
    context.close()


@pytest.mark.parametrize(("locale", "query", "word"), QUERIES)
def test_query_finds_the_page_with_the_word(search_page: Page, search_host: str, locale: str, query: str, word: str) -> None:
    found = results(search_page, search_host, locale, query)
    number = WORDS[locale].index(word)
    assert any(f"/{locale}/word-{number}/" in address for address in found), found


def results(page: Page, host: str, locale: str, query: str) -> list[str]:
    """The addresses that a search on the home page of a language offers."""
    page.goto(f"{host}{locale}/")
    page.locator(".md-search__input").click()
    page.locator(".md-search__input").fill(query)
    page.keyboard.press("Shift")  # the theme listens to keys, not to what is filled in
    page.wait_for_function(
        "() => { const line = document.querySelector('.md-search-result__meta'); return /\\d|Keine|eşleşen|bulunamadı/i.test(line.textContent); }",
        timeout=10_000,
    )
    return [link.get_attribute("href") or "" for link in page.locator(".md-search-result__link").all()]
