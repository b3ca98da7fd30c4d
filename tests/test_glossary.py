"""The glossary: which terms there are, how a page shows them, and each mistake in the file at its line."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from macros import check, glossary, pages
from macros.findings import DataErrors
from macros.language import CODES, load

ROOT = Path(__file__).parent.parent
TERMS = glossary.load(ROOT)

# What the guide calls things, in de, en and tr, as its authors agreed.
FORMS = {
    "gradient-accumulation": ("Gradientenakkumulation", "gradient accumulation", "gradyan biriktirme (gradient accumulation)"),
    "headroom": ("Reserve", "headroom", "güvenlik payı"),
    "sharding": ("Sharding", "sharding", "bölüştürme (sharding)"),
    "fragmentation": ("Fragmentierung", "fragmentation", "bellek parçalanması (fragmentation)"),
    "tight": ("knapp", "tight", "sınırda"),
}


def test_the_terms_are_those_of_the_field():
    assert 80 <= len(TERMS) <= 115
    for key, forms in FORMS.items():
        (term,) = [term for term in TERMS if term.key == key]
        assert tuple(term.forms[code] for code in CODES) == forms


@pytest.mark.parametrize("code", CODES)
def test_the_page_shows_every_term_once_under_its_key(code: str):
    page = pages.parse((ROOT / "docs" / code / glossary.PAGE).read_bytes(), f"docs/{code}/{glossary.PAGE}")
    groups = re.findall(r'glossary\("([a-z]+)"\)', page.body)
    assert groups == list(dict.fromkeys(term.group for term in TERMS))
    shown = "".join(str(glossary.glossary(load(code), TERMS, group)) for group in groups)
    assert re.findall(r'<h3 id="([^"]+)"', shown) == [term.key for term in TERMS]
    assert not {heading.anchor for heading in page.headings} & {term.key for term in TERMS}


def test_an_entry_names_the_other_languages_escapes_and_leads_on():
    made = glossary.Term(
        "rank", "g", dict(zip(CODES, ("Rang", "rank", "rank"), strict=True)), dict.fromkeys(CODES, "`r` < 64"), "a.md#b", 1
    )
    assert glossary.glossary(load("en"), (made,), "g") == (
        '<div class="vg-terms"><h3 id="rank" class="vg-term">rank</h3>'
        '<p class="vg-term__others">German: <span lang="de">Rang</span></p>'
        '<p><code>r</code> &lt; 64 <a href="article:a.md#b"></a></p></div>'
    )


def test_an_unknown_group_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="no group 'methds'; did you mean 'methods'.*; there are methods, memory"):
        glossary.glossary(load("de"), TERMS, "methds")


RECORD = """\
lora:
  group: methods
  see: other.md
  de: {term: LoRA, means: Text.}
  en: {term: LoRA, means: Text.}
  tr: {term: LoRA, means: Metin.}
"""
WRONG = {
    "a key that is no anchor": ("lora:", "lo_ra:", "1: lo_ra: expected lower-case ASCII words with hyphens, like gradient-checkpointing"),
    "no group": ("  group: methods\n", "", "1: lora: expected a group"),
    "a language too few": ("  en: {term: LoRA, means: Text.}\n", "", "1: lora: en: expected term and means"),
    "half a language": ("en: {term: LoRA, means: Text.}", "en: {term: LoRA}", "5: lora: en: expected term and means"),
    "an empty explanation": ("means: Metin.", "means: ''", "6: lora: tr: expected term and means"),
    "an unknown field": ("see:", "sees:", "3: lora: unknown key 'sees'; did you mean 'see'?"),
    "a way that is none": ("other.md", "/other/", "3: lora: see: expected a page like lora-vs-qlora.md#quality, got '/other/'"),
    "no record": (RECORD, "lora: LoRA\n", "1: lora: expected a group and the forms in de, en, tr"),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
def test_a_mistake_is_found_at_its_line(kind: str, tmp_path: Path):
    old, new, message = WRONG[kind]
    (tmp_path / "data").mkdir()
    (tmp_path / glossary.PATH).write_text(RECORD.replace(old, new), encoding="utf-8")
    with pytest.raises(DataErrors) as caught:
        glossary.load(tmp_path)
    assert [str(finding) for finding in caught.value.findings] == [f"data/glossary.yml:{message}"]


def test_explanations_obey_the_rules_of_pages(tmp_path: Path):
    root = tmp_path / "guide"
    for folder in ("data", "macros/messages", "overrides/messages"):
        shutil.copytree(ROOT / folder, root / folder)
    (root / "data/measurements.yml").unlink()
    path = root / glossary.PATH
    text = path.read_text(encoding="utf-8")
    line = next(number for number, written in enumerate(text.splitlines(), 1) if written == "vram:")
    path.write_text(text.replace("Ekran kartının üzerindeki bellek.", "Kartın hafızası, 7,3\u00a0GB’lık.", 1), encoding="utf-8")
    found = [str(finding) for finding in check.check(root).findings if finding.path == glossary.PATH]
    assert found == [
        f"data/glossary.yml:{line}: vram.tr: '7,3\\xa0GB' is typed; let a word of the vocabulary compute it",
        f"data/glossary.yml:{line}: vram.tr: 'GB’lık': no ending on a unit or a percentage; put a noun behind it",
        f"data/glossary.yml:{line}: vram.tr: 'hafıza' is not used here; write bellek",
    ]
