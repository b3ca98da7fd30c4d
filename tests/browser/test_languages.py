"""Languages in the browser: the menu keeps the page, the root page sends a reader on once, the 404 page speaks all three."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.conftest import hosted


@pytest.mark.parametrize("place", ["lora-qlora-workstation/", "articles/", "blog/", ""])
def test_menu_keeps_the_page(page: Page, host: str, place: str) -> None:
    page.goto(f"{host}de/{place}")
    for name, locale in (("Türkçe", "tr"), ("English", "en"), ("Deutsch", "de")):
        page.locator(".vg-languages button").hover()
        page.locator(".vg-languages").get_by_role("link", name=name).click()
        page.wait_for_url(f"{host}{locale}/{place}")
        assert page.locator("html").get_attribute("lang") == locale


def test_menu_keeps_a_post(page: Page, sample_host: str) -> None:
    page.goto(f"{sample_host}en/blog/first/")
    page.locator(".vg-languages button").hover()
    page.locator(".vg-languages").get_by_role("link", name="Türkçe").click()
    page.wait_for_url(f"{sample_host}tr/blog/first/")


@pytest.mark.parametrize(("browser_locale", "place"), [("tr-TR", "tr/"), ("de-AT", "de/"), ("en-GB", "en/"), ("fr-FR", "")])
def test_root_page_goes_to_the_language_of_the_browser_once(browser: Browser, host: str, browser_locale: str, place: str) -> None:
    context = browser.new_context(locale=browser_locale)
    page = context.new_page()
    page.goto(host)
    page.wait_for_url(f"{host}{place}")
    page.goto(host)
    page.wait_for_timeout(300)
    assert page.url == host
    assert [link.inner_text().split("\n")[0] for link in page.locator("main li a").all()] == ["Deutsch", "English", "Türkçe"]
    context.close()


def test_root_page_works_without_javascript(browser: Browser, host: str) -> None:
    context = browser.new_context(java_script_enabled=False, locale="tr-TR")
    page = context.new_page()
    page.goto(host)
    page.get_by_role("link", name="Türkçe").click()
    assert page.url == f"{host}tr/"
    context.close()


def test_missing_pages_are_answered_in_all_languages(page: Page, host: str) -> None:
    response = page.goto(f"{host}de/no/such/page/")
    assert response is not None and response.status == 404
    assert [item.get_attribute("lang") for item in page.locator("main li").all()] == ["de", "en", "tr"]
    page.get_by_role("link", name="Ana sayfaya git").click()
    assert page.url == f"{host}tr/"


def test_preview_works_under_a_path(page: Page, preview_site: Path) -> None:
    missing: list[str] = []
    page.on("response", lambda response: missing.append(response.url) if response.status >= 400 else None)
    with hosted(preview_site, "/previews/pr-12/") as host:
        page.goto(host)
        page.wait_for_url(f"{host}de/")
        page.get_by_role("link", name="Artikel", exact=True).first.click()
        assert page.url == f"{host}de/articles/"
        assert "Pull Request 12, Commit abc" in page.locator(".md-banner").inner_text()
    assert missing == []
