"""Every page in a real browser: nothing from outside, nothing too wide, no serious barrier, the answer on the first screen."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

WIDTHS = (320, 360, 1280)


def test_no_page_calls_another_host_or_breaks_its_own_policy(browser: Browser, host: str, addresses: list[str]) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 800}, locale="fr-FR")
    page = context.new_page()
    foreign: list[str] = []
    missing: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: foreign.append(request.url) if not request.url.startswith((host, "data:", "blob:")) else None)
    page.on("response", lambda response: missing.append(response.url) if response.status >= 400 else None)
    page.on("console", lambda message: said.append(f"{page.url}: {message.text}") if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(f"{page.url}: {error}"))
    for address in addresses:
        page.goto(host + address)
        page.wait_for_timeout(150)  # scripts of the theme go on after the page is loaded
    context.close()
    assert foreign == []
    assert missing == []
    assert said == []


def test_no_page_is_wider_than_its_window(browser: Browser, host: str, addresses: list[str]) -> None:
    context = browser.new_context(locale="fr-FR")
    page = context.new_page()
    wide = []
    for address in addresses:
        page.goto(host + address)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            if over > 0:
                wide.append((address, width, over))
    context.close()
    assert wide == []


LEVELS = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}


def barriers(browser: Browser, addresses: list[str], options: dict[str, Any], scheme: str) -> list[tuple[str, str, list[str]]]:
    """What axe finds on pages and calls serious, with the first places."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme=scheme, locale="fr-FR", reduced_motion="reduce")
    page = context.new_page()
    found = []
    for address in addresses:
        page.goto(address)
        for violation in Axe().run(page, options=options).response["violations"]:
            if violation["impact"] in ("serious", "critical"):
                places = [" ".join(map(str, node["target"])) for node in violation["nodes"][:3]]
                found.append((address, violation["id"], places))
    context.close()
    return found


def test_no_serious_barrier(browser: Browser, host: str, addresses: list[str]) -> None:
    assert barriers(browser, [host + address for address in addresses], LEVELS, "light") == []


def test_no_weak_contrast_in_the_dark(browser: Browser, host: str, addresses: list[str]) -> None:
    """Colours are all that the other scheme changes, and the same in each language."""
    pages = [host + address for address in addresses if address.startswith("de/")]
    assert len(pages) > 40
    assert barriers(browser, pages, {"runOnly": {"type": "rule", "values": ["color-contrast"]}}, "dark") == []


# The first amount with a unit, or the first verdict, that a reader sees in the text of an article.
FIRST_FIGURE = """() => {
  const article = document.querySelector(".vg-article");
  const figures = article ? [...article.querySelectorAll("data.figure, .vg-verdict")] : [];
  const first = figures.find((one) => one.matches(".vg-verdict") || /[GM]i?B|%|[Bb]yte|bayt/.test(one.textContent));
  return article && [first ? first.getBoundingClientRect().bottom : null, article.parentElement.querySelector("h1").getBoundingClientRect().top];
}"""


@pytest.mark.parametrize("locale", ["de", "en", "tr"])
def test_every_article_answers_on_the_first_screen_of_a_phone(browser: Browser, host: str, addresses: list[str], locale: str) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 640}, locale="fr-FR")
    page = context.new_page()
    answers = {}
    for address in addresses:
        if address.startswith(f"{locale}/"):
            page.goto(host + address)
            if (places := page.evaluate(FIRST_FIGURE)) is not None:
                answers[address] = places
    context.close()
    late = {address: places for address, places in answers.items() if not places[0] or places[0] > 640 or places[1] > 120}
    assert late == {}
    assert len(answers) >= 30


def test_wide_tables_keep_their_first_column_on_a_phone(browser: Browser, host: str) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 640}, locale="fr-FR")
    page = context.new_page()
    page.goto(f"{host}de/lora-qlora-workstation/")
    before, after, scrolled = page.evaluate(
        """() => {
          const box = [...document.querySelectorAll('.vg-table .vg-scroll')].find(b => b.scrollWidth > b.clientWidth + 40);
          const cell = box.querySelector('tbody tr > :first-child');
          const before = cell.getBoundingClientRect().left;
          box.scrollLeft = 40;
          return [before, cell.getBoundingClientRect().left, box.scrollLeft];
        }"""
    )
    context.close()
    assert scrolled == 40
    assert abs(before - after) < 1.5


def test_printing_leaves_out_the_frame_and_keeps_the_checklist(page: Page, host: str) -> None:
    page.goto(f"{host}de/lora-qlora-workstation/")
    page.emulate_media(media="print")
    for frame in (".md-header", ".md-tabs", ".md-sidebar", ".md-footer", ".vg-path", ".vg-next", ".md-clipboard"):
        assert not any(part.is_visible() for part in page.locator(frame).all()), frame
    assert not page.locator(".vg-copy").first.is_visible()
    assert page.locator(".vg-checklist__items input").first.is_visible()
    source = page.locator('#sources ~ ul a[href^="https://"]').first
    assert source.get_attribute("href") in source.evaluate("link => getComputedStyle(link, '::after').content.replaceAll('\\\\', '')")


def test_printed_tables_are_not_wider_than_the_paper(browser: Browser, host: str, addresses: list[str]) -> None:
    context = browser.new_context(viewport={"width": 700, "height": 990}, locale="fr-FR")  # A4 with margins of a little over a centimetre
    page = context.new_page()
    page.emulate_media(media="print")
    wide = {}
    for address in addresses:
        page.goto(host + address)
        right = page.evaluate("() => [...document.querySelectorAll('table, pre, figure svg')].map((one) => one.getBoundingClientRect().right)")
        if max(right, default=0) > 700:
            wide[address] = max(right)
    context.close()
    assert wide == {}
