"""Every page in a real browser: nothing from outside, nothing too wide, no serious barrier, the answer on the first screen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

WIDTHS = (1280, 360, 320)
PAPER = 700  # A4 with margins of a little over a centimetre

# A new size of the window is drawn with the next frame.
DRAWN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
OVER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
RIGHT = "() => Math.max(0, ...[...document.querySelectorAll('table, pre, figure svg')].map((one) => one.getBoundingClientRect().right))"
# The first amount with a unit, or the first verdict, that a reader sees in the text of an article.
FIRST_FIGURE = """() => {
  const article = document.querySelector(".vg-article");
  const figures = article ? [...article.querySelectorAll("data.figure, .vg-verdict")] : [];
  const first = figures.find((one) => one.matches(".vg-verdict") || /[GM]i?B|%|[Bb]yte|bayt/.test(one.textContent));
  return article && [first ? first.getBoundingClientRect().bottom : null, article.parentElement.querySelector("h1").getBoundingClientRect().top];
}"""


@dataclass
class Visits:
    """What was seen of all pages, each opened once."""

    foreign: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    wide: list[tuple[str, int, int]] = field(default_factory=list)
    """Address, width of the window, pixels too many."""
    figures: dict[str, list[float | None]] = field(default_factory=dict)
    """Where the first figure ends and the title begins on a phone, in each article."""
    printed: dict[str, float] = field(default_factory=dict)
    """Where the widest table, code or chart ends on paper."""


@pytest.fixture(scope="module")
def visits(browser: Browser, host: str, addresses: list[str]) -> Visits:
    context = browser.new_context(viewport={"width": WIDTHS[0], "height": 800}, locale="fr-FR")
    page, seen = context.new_page(), Visits()
    page.on("request", lambda request: seen.foreign.append(request.url) if not request.url.startswith((host, "data:", "blob:")) else None)
    page.on("response", lambda response: seen.missing.append(response.url) if response.status >= 400 else None)
    page.on("console", lambda message: seen.said.append(f"{page.url}: {message.text}") if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: seen.said.append(f"{page.url}: {error}"))
    for address in addresses:
        page.set_viewport_size({"width": WIDTHS[0], "height": 800})
        page.goto(host + address)
        page.wait_for_timeout(150)  # scripts of the theme go on after the page is loaded
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 640})
            page.evaluate(DRAWN)
            if (over := page.evaluate(OVER)) > 0:
                seen.wide.append((address, width, over))
            if width == 360 and (places := page.evaluate(FIRST_FIGURE)) is not None:
                seen.figures[address] = places
        page.emulate_media(media="print")
        page.set_viewport_size({"width": PAPER, "height": 990})
        page.evaluate(DRAWN)
        seen.printed[address] = page.evaluate(RIGHT)
        page.emulate_media(media="screen")
    context.close()
    return seen


def test_no_page_calls_another_host_or_breaks_its_own_policy(visits: Visits) -> None:
    assert visits.foreign == []
    assert visits.missing == []
    assert visits.said == []


def test_no_page_is_wider_than_its_window(visits: Visits) -> None:
    assert visits.wide == []


def test_printed_tables_are_not_wider_than_the_paper(visits: Visits) -> None:
    assert {address: right for address, right in visits.printed.items() if right > PAPER} == {}


@pytest.mark.parametrize("locale", ["de", "en", "tr"])
def test_every_article_answers_on_the_first_screen_of_a_phone(visits: Visits, locale: str) -> None:
    answers = {address: places for address, places in visits.figures.items() if address.startswith(f"{locale}/")}
    late = {address: places for address, places in answers.items() if not places[0] or places[0] > 640 or places[1] > 120}
    assert late == {}
    assert len(answers) >= 30


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
    """Every page in one of its languages: what axe finds lies in the structure, which all share."""
    assert barriers(browser, rotating(host, addresses, 0), LEVELS, "light") == []


def test_no_weak_contrast_in_the_dark(browser: Browser, host: str, addresses: list[str]) -> None:
    """Colours are all that the other scheme changes."""
    assert barriers(browser, rotating(host, addresses, 1), {"runOnly": {"type": "rule", "values": ["color-contrast"]}}, "dark") == []


def rotating(host: str, addresses: list[str], first: int) -> list[str]:
    """Each page in one language, the next page in the next one, and what has no language."""
    locales = ("de", "en", "tr")
    names = sorted({address.partition("/")[2] for address in addresses if address.startswith(locales)})
    chosen = [f"{locales[(number + first) % 3]}/{name}" for number, name in enumerate(names)]
    assert len(chosen) > 40
    return [host + address for address in [*chosen, *(address for address in addresses if not address.startswith(locales))]]


def test_a_table_that_scrolls_can_be_reached_by_keyboard(browser: Browser, host: str) -> None:
    """One that an author wrote in Markdown, which the theme wraps; at full width it has no stop."""
    for width, stops in ((360, True), (1900, False)):
        context = browser.new_context(viewport={"width": width, "height": 640}, locale="fr-FR")
        page = context.new_page()
        page.goto(f"{host}en/estimate-before-training/", wait_until="load")
        boxes = page.locator(".md-typeset__scrollwrap").evaluate_all("all => all.map(box => [box.scrollWidth > box.clientWidth, box.tabIndex === 0])")
        context.close()
        assert boxes and all(scrolls == stop for scrolls, stop in boxes)
        assert any(stop for _, stop in boxes) == stops


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
