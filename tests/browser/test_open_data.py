"""The example of the page of open data, copied onto another site, in Chromium."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext

from macros.dataset import load
from macros.estimator import units
from macros.recipes import estimate_keys
from tests.browser.conftest import hosted
from tests.test_export import ROOT, example

RECIPE = {"model": "qwen3-8b", "method": "qlora", "sequence_length": 4096, "gpu": "rtx-4090"}


def test_the_example_calculates_on_another_site(site: Path, context: BrowserContext, host: str, tmp_path: Path) -> None:
    wanted = estimate_keys(load(ROOT), RECIPE)
    (tmp_path / "404.html").write_text("", encoding="utf-8")
    code = example(site, "de").replace("https://vram-guide.example/", host)
    (tmp_path / "index.html").write_text(code, encoding="utf-8")
    with hosted(tmp_path) as elsewhere:
        page = context.new_page()
        problems: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(elsewhere)
        assert problems == []
        assert page.locator("#peak").inner_text() == units.gb_text(wanted.peak_bytes, ".", ",", "-")
        assert page.locator("#verdict").inner_text() == wanted.verdict


@pytest.mark.parametrize("locale", ["de", "en", "tr"])
def test_every_file_can_be_opened_from_the_page(context: BrowserContext, host: str, locale: str) -> None:
    page = context.new_page()
    page.goto(f"{host}{locale}/open-data/")
    addresses = page.locator('a[href*="data/v1/"]').evaluate_all("links => links.map(link => link.href)")
    assert len(set(addresses)) == 15
    assert {address: context.request.get(address).status for address in addresses} == dict.fromkeys(addresses, 200)
