"""What readers type finds its page among the first three results: the real index in the theme's own search worker."""

from __future__ import annotations

import pytest
import yaml
from playwright.sync_api import Page

from tests.site_build import LOCALES, ROOT

SEARCHES: dict[str, dict[str, list[str]]] = yaml.safe_load((ROOT / "tests" / "searches.yml").read_text(encoding="utf-8"))
# How German is typed without umlauts, and Turkish on a keyboard without its letters.
PLAIN = {
    "de": str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"}),
    "en": {},
    "tr": str.maketrans("çğıöşüÇĞİÖŞÜ", "cgiosuCGIOSU"),
}
# The worker's messages as the theme numbers them: 0 sets it up, 2 asks; an item of the answer is a page with its sections.
ASK = """async (queries) => {
  const theme = JSON.parse(document.getElementById("__config").textContent);
  const base = new URL(theme.base + "/", location.href);
  const index = await (await fetch(new URL("search/search_index.json", base))).json();
  const worker = new Worker(new URL(theme.search, base));
  const say = (message) => new Promise((done) => { worker.onmessage = (event) => done(event.data); worker.postMessage(message); });
  await say({type: 0, data: {...index, options: {suggest: false}}});
  const found = {};
  for (const query of queries) {
    found[query] = (await say({type: 2, data: query})).data.items.map((item) => item[0].location.split("#")[0]);
  }
  worker.terminate();
  return found;
}"""


@pytest.mark.parametrize("locale", LOCALES)
def test_each_search_finds_its_page(page: Page, host: str, locale: str) -> None:
    wanted = [
        (form, f"{key}/")
        for key, searches in SEARCHES.items()
        for search in searches[locale]
        for form in dict.fromkeys((search, search.translate(PLAIN[locale])))
    ]
    page.goto(f"{host}{locale}/")
    found = page.evaluate(ASK, [search for search, _ in wanted])
    assert [(search, key, found[search][:3]) for search, key in wanted if key not in found[search][:3]] == []
    assert len(wanted) >= 3 * len(SEARCHES)
