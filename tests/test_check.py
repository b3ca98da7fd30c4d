"""`make check` finds each kind of mistake at its line, and the guide as it is has none."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from macros import articles, check, dataset, pages, records, schemas
from tests.check_sample import DESCRIPTION, LINES, ROOT, TEXTS, edit, found, page


def edit_all(root: Path, old: str, new: str) -> None:
    """The same edit in each language, with the translations stamped again."""
    for language in TEXTS:
        edit(root, f"docs/{language}/article.md", old, new)
    for language in ("en", "tr"):
        articles.stamp(f"docs/{language}/article.md", root)


def test_the_guide_as_it_is_has_no_errors():
    started = time.process_time()
    report = check.check(ROOT)
    assert [str(finding) for finding in report.errors] == []
    assert report.rendered and report.pages >= 24
    assert time.process_time() - started < 10


def test_the_sample_has_no_findings(root: Path):
    assert found(root) == []


# One page: planted in the Turkish or English version, where the translation's stamp does not matter.

ONE_PAGE = {
    "an unknown key of a record": (
        "en", 'model="llama-3.1-8b"', 'model="llama-3.1-8"', "call",
        "data/models.yml has no 'llama-3.1-8'; did you mean 'llama-3.1-8b'?",
    ),
    "an unknown filter": ("en", "| gb }}", "| bg }}", "call", "there is no filter 'bg'"),
    "a template that is not closed": ("en", "| gb }}", "| gb }", "call", "template syntax: '{{' is not closed"),
    "a long title": (
        "en", "How much", "How much and how often and how long and when and where and with what", "title",
        "title: expected at most 60 characters, got 92",
    ),
    "a heading without an anchor": (
        "en", "In short { #short-answer }", "In short", "h2",
        "this heading has no anchor; write one behind it: { #short-answer }",
    ),
    "an anchor that is not ASCII": (
        "tr", "#short-answer }", "#kısa }", "h2",
        "anchor 'kısa': expected lower-case ASCII words with hyphens, like short-answer",
    ),
    "a link to nowhere": (
        "en", "other.md#short-answer", "othr.md#short-answer", "link",
        "link to 'othr.md#short-answer': there is no docs/en/othr.md; did you mean 'other.md'?",
    ),
    "a link to a missing heading": (
        "en", "other.md#short-answer", "other.md#long-answer", "link",
        "link to 'other.md#long-answer': docs/en/other.md has no anchor 'long-answer'; did you mean 'short-answer'?",
    ),
    "a link that leaves the site's folder": (
        "en", "other.md#short-answer", "/en/other/", "link",
        "link to '/en/other/': expected a path relative to this page, so that the site works below any address",
    ),
    "a link without encryption": (
        "en", "other.md#short-answer", "http://example.org", "link", "link to 'http://example.org': expected https://",
    ),
    "a missing picture": (
        "en", "[here]", "![](missing.png) [here]", "link", "link to 'missing.png': there is no such file",
    ),
    "a typed figure": (
        "en", "It takes", "It takes 7.3\u00a0GB or", "call",
        "'7.3\\xa0GB' is typed; let a word of the vocabulary compute it",
    ),
    "a typed figure in GiB": (
        "en", "It takes", "Here 24\u00a0GiB or", "call", "'24\\xa0GiB' is typed; let a word of the vocabulary compute it",
    ),
    "a card's size typed as a need": (
        "en", "It takes", "It takes about 24\u00a0GB or", "call",
        "'24\\xa0GB' is typed as what something needs; let a word of the vocabulary compute it",
    ),
    "a card's size typed as a need in Turkish": (
        "tr", "Gereken", "24\u00a0GB bellek gerekir; gereken", "call",
        "'24\\xa0GB' is typed as what something needs; let a word of the vocabulary compute it",
    ),
    "a unit that can lose its number": (
        "en", "It takes", "On 24 GB cards", "call", "'24 GB': expected a no-break space (U+00A0) before GB",
    ),
    "an ending on a computed value": (
        "tr", "| gb }}.", "| gb }}’a.", "call",
        "'}}’a': no ending on a computed value; put a noun behind it that takes the ending",
    ),
    "an ending on a unit": (
        "tr", "Gereken", "24\u00a0GB’lık kartta", "call",
        "'GB’lık': no ending on a unit or a percentage; put a noun behind it",
    ),
    "an ending on a percentage": (
        "tr", "Gereken", "Gerekenin %50’si", "call",
        "'%50’si': no ending on a unit or a percentage; put a noun behind it",
    ),
    "percent written in English style": ("tr", "Gereken", "80% gereken", "call", "'0%': here percent is written like %50"),
    "percent written in German style": ("en", "It takes", "80\u202f% of it", "call", "'0\\u202f%': here percent is written like 50%"),
    "a decimal comma in English": (
        "en", "It takes", "At 4,5 bits", "call", "'4,5 bits': here the decimal sign is a point",
    ),
    "a decimal point in Turkish": (
        "tr", "Gereken", "4.5 bit", "call", "'4.5 bit': here the decimal sign is a comma",
    ),
    "a straight apostrophe": ("en", "It takes", "It doesn't take", "call", "\"n't\": the apostrophe is ’ (U+2019)"),
    "a letter in two pieces": (
        "tr", "Gereken", "Go\u0308re gereken", "call",
        "'o\u0308': one letter as several characters; save the text as Unicode NFC",
    ),
    "arithmetic": (
        "en", ".peak | gb", ".peak * 2 | gb", "call",
        "arithmetic does not belong in a page; let a word of the vocabulary do it",
    ),
    "a picture from another site": (
        "en", "[here]", "![](https://example.org/x.png) [here]", "link",
        "loads 'https://example.org/x.png' from another site; keep a copy in docs/assets, so that nobody watches the readers",
    ),
    "a script": (
        "en", "It takes", "<script>alert(1)</script> It takes", "call",
        "scripts stand in docs/assets/javascripts, not in a page",
    ),
    "a discouraged word": ("tr", "Gerisi", "Hafızanın gerisi", "link", "'Hafıza' is not used here; write bellek"),
    "a discouraged word at the start of a sentence": (
        "en", "It takes", "Graphics memory", "call", "'Graphics memory' is not used here; write GPU memory",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", ONE_PAGE)
def test_a_mistake_on_a_page_is_found_at_its_line(kind: str, root: Path):
    language, old, new, where, message = ONE_PAGE[kind]
    path = f"docs/{language}/article.md"
    edit(root, path, old, new)
    assert f"{path}:{LINES[language][where]}: {message}" in found(root)


RIGHT = {
    "the size of a card is a name": ("en", "It takes", "Two 24\u00a0GB cards are not one card. It takes"),
    "a quotation": ("en", "It takes", "The card says “61.3\u00a0GiB” there. It takes"),
    "code": ("en", "It takes", "PyTorch prints `7.3 GiB`. It takes"),
    "a version is no decimal": ("tr", "Gereken", "TRL 1.7 ile gereken"),
    "a group of digits": ("tr", "Gereken", "32.768 bayt; gereken"),
    "a word that begins like a discouraged one": ("tr", "Gereken", "Bu koşulda gereken"),
    "a word that is discussed": ("tr", "Gereken", "“Hafıza” denmez; gereken"),
    "percent": ("tr", "Gereken", "Yaklaşık %50 eder; gereken"),
    "an anchor of another kind": ("en", "It takes", "<span id=\"there\"></span>It takes"),
}


@pytest.mark.parametrize("kind", RIGHT)
def test_what_is_right_is_not_reported(kind: str, root: Path):
    language, old, new = RIGHT[kind]
    edit(root, f"docs/{language}/article.md", old, new)
    assert found(root) == []


def test_a_german_card_is_a_name(root: Path):
    edit(root, "docs/de/article.md", "Es braucht", "Auf einer 24-GB-Karte braucht es")
    assert all("has changed" in finding for finding in found(root))


# Front matter

FRONT = {
    "no category": ("category: guide\n", "", 1, "the front matter lacks 'category'"),
    "an unknown category": ("category: guide", "category: guides", 5, "there is no category 'guides'; did you mean 'guide'?"),
    "no title": ('title: "{title}"\n', "", 1, "the front matter lacks 'title'"),
    "an unknown key": ("reviewed:", "reviewd:", 6, "unknown key 'reviewd' in the front matter; did you mean 'reviewed'?"),
    "a review that has not been": ("2026-11-30", "2099-11-30", 6, "reviewed: 2099-11-30 is in the future"),
    "a review on no day": ("2026-11-30", "2026-11-31", 6, "reviewed: expected a day like 2026-11-30, got '2026-11-31'"),
    "a draft that is perhaps one": (
        "category:", "draft: maybe\ncategory:", 5, "draft: expected true or false, got 'maybe'",
    ),
    "the same key twice": ("category: guide", "category: guide\ncategory: news", 6, "'category' stands here a second time; first in line 5"),
}  # fmt: skip


@pytest.mark.parametrize("kind", FRONT)
def test_a_mistake_in_front_matter(kind: str, root: Path):
    old, new, line, message = FRONT[kind]
    edit(root, "docs/en/article.md", old.format(title=TEXTS["en"][0]), new)
    place = f"docs/en/article.md:{line}: {message}"
    assert place in found(root)


@pytest.mark.parametrize("length", [69, 161])
def test_a_description_of_the_wrong_length(length: int, root: Path):
    edit(root, "docs/en/article.md", DESCRIPTION.format(TEXTS["en"][5]), "x" * length)
    expected = f"docs/en/article.md:3: description: expected 70 to 160 characters, got {length}"
    assert expected in found(root)


def test_a_figure_in_a_title_counts_as_readers_see_it(root: Path):
    call = "{{ estimate(model='llama-3.1-8b', method='qlora').peak | gb }}"
    for language in TEXTS:
        edit(root, f"docs/{language}/article.md", TEXTS[language][0], f"VRAM: {call}")
    for language in ("en", "tr"):
        articles.stamp(f"docs/{language}/article.md", root)
    assert found(root) == []


def test_a_post_has_a_date_a_slug_and_categories(root: Path):
    for language in TEXTS:
        edit(root, f"docs/{language}/article.md", "category: guide\n", "")
        post = root / "docs" / language / "blog/posts/a-post.md"
        post.parent.mkdir(parents=True)
        text = (root / "docs" / language / "article.md").read_text(encoding="utf-8")
        post.write_text(text.replace("other.md", "../../other.md"), encoding="utf-8")
        edit(root, f"docs/{language}/article.md", "reviewed:", "category: guide\nreviewed:")
    mine = [finding for finding in found(root) if finding.startswith("docs/de/blog")]
    assert mine == [f"docs/de/blog/posts/a-post.md:1: the front matter lacks '{key}'" for key in ("categories", "date", "slug")]
    for language in TEXTS:
        says = "date:\n  created: 2026-13-30\nslug: Ein-Beitrag\ncategories: [guides]\nreviewed:"
        edit(root, f"docs/{language}/blog/posts/a-post.md", "reviewed:", says)
    mine = [finding for finding in found(root) if finding.startswith("docs/de/blog")]
    assert mine == [
        "docs/de/blog/posts/a-post.md:6: date.created: expected a day like 2026-11-30, got '2026-13-30'",
        "docs/de/blog/posts/a-post.md:7: slug: expected lower-case ASCII words with hyphens, got 'Ein-Beitrag'",
        "docs/de/blog/posts/a-post.md:8: there is no category 'guides'; did you mean 'guide'?",
    ]


# Languages

PARITY = {
    "a heading of another level": (
        "## In short", "### In short", "h2",
        "heading 1 is `### { #short-answer }`; docs/de/article.md:9 has `## { #short-answer }`",
    ),
    "another anchor": (
        "#short-answer }", "#answer }", "h2",
        "heading 1 is `## { #answer }`; docs/de/article.md:9 has `## { #short-answer }`",
    ),
    "another argument": (
        'method="qlora"', 'method="lora"', "call",
        "the call `estimate(model='llama-3.1-8b', method='lora').peak | gb` differs from docs/de/article.md:11: "
        "`estimate(model='llama-3.1-8b', method='qlora').peak | gb`",
    ),
    "another filter": (
        "| gb }}", "| gib }}", "call",
        "the call `estimate(model='llama-3.1-8b', method='qlora').peak | gib` differs from docs/de/article.md:11: "
        "`estimate(model='llama-3.1-8b', method='qlora').peak | gb`",
    ),
    "a call too many": ("It takes", "{{ units_note() }} It takes", "call", "the call `units_note()` is not in docs/de/article.md"),
    "another link": (
        "other.md#short-answer", "other.md", "link",
        "the link `other.md` differs from docs/de/article.md:13: `other.md#short-answer`",
    ),
    "another admonition": ("!!! note", "!!! tip", "note", "admonition 1 is `tip`; docs/de/article.md:15 has `note`"),
    "other code": (
        "nvidia-smi\n", "nvidia-smi -q\n", "code",
        "code block 1 is `bash⏎nvidia-smi -q`; docs/de/article.md:18 has `bash⏎nvidia-smi`",
    ),
    "a picture too many": (
        "[here]", "![](../assets/x.png) [here]", "link", "the image `../assets/x.png` is not in docs/de/article.md",
    ),
    "a paragraph that nobody translated": (
        f"    {TEXTS['en'][5]}", f"    {TEXTS['de'][5]}", "note",
        "this paragraph is the same text as docs/de/article.md:15; translate it",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", PARITY)
def test_a_difference_between_languages(kind: str, root: Path):
    old, new, where, message = PARITY[kind]
    edit(root, "docs/en/article.md", old, new)
    assert f"docs/en/article.md:{LINES['en'][where]}: {message}" in found(root)


def test_a_call_too_few(root: Path):
    edit(root, "docs/en/article.md", '{{ estimate(model="llama-3.1-8b", method="qlora").peak | gb }}', "much")
    assert found(root) == [
        "docs/en/article.md:11: lacks the call of docs/de/article.md:11: "
        "`estimate(model='llama-3.1-8b', method='qlora').peak | gb`"
    ]


def test_the_order_of_sentences_and_the_way_to_quote_are_free(root: Path):
    edit(root, "docs/en/article.md", 'estimate(model="llama-3.1-8b", method="qlora")', "estimate( model='llama-3.1-8b',method='qlora' )")
    edit(root, "docs/de/article.md", "Es braucht", "{{ units_note() }}\n\nEs braucht")
    edit(root, "docs/en/article.md", "The rest is", "{{ units_note() }}\n\nThe rest is")
    edit(root, "docs/tr/article.md", "Gerisi", "{{ units_note() }}\n\nGerisi")
    assert all("has changed" in finding for finding in found(root))


def test_another_category_in_another_language(root: Path):
    edit(root, "docs/en/article.md", "category: guide", "category: news")
    assert found(root) == ["docs/en/article.md:5: category: docs/de/article.md:5 has 'guide', here is 'news'"]


def test_a_missing_translation_is_an_error(root: Path):
    (root / "docs/tr/article.md").unlink()
    assert found(root) == ["docs/de/article.md:1: has no translation docs/tr/article.md; drafts may lack one (draft: true)"]


def test_a_draft_may_lack_its_translation(root: Path):
    (root / "docs/tr/article.md").unlink()
    edit(root, "docs/de/article.md", "category:", "draft: true\ncategory:")
    edit(root, "docs/en/article.md", "category:", "draft: true\ncategory:")
    articles.stamp("docs/en/article.md", root)
    assert found(root) == []


def test_a_translation_of_nothing_is_an_error(root: Path):
    (root / "docs/de/article.md").unlink()
    message = "is a translation of nothing: no version is without a translation block"
    assert found(root) == [f"docs/en/article.md:7: {message}", f"docs/tr/article.md:7: {message}"]


def test_a_stale_translation_is_a_warning_that_names_the_diff(root: Path):
    before = pages.blob_id((root / "docs/de/article.md").read_bytes())
    edit(root, "docs/de/article.md", "Der Rest steht", "Alles Weitere steht")
    assert found(root) == [
        f"docs/{language}/article.md:9: warning: docs/de/article.md has changed; see git diff {before[:12]} "
        f"HEAD:docs/de/article.md, then python -m macros articles stamp docs/{language}/article.md"
        for language in ("en", "tr")
    ]
    assert check.check(root).errors == []


@pytest.mark.parametrize(
    ("block", "line", "message"),
    [
        ("", 2, "has no translation block; write one: python -m macros articles stamp docs/en/article.md"),
        ("translation:\n  from: en\n  blob: {blob}\n", 8, "translation.from: expected 'de', the source's language, got 'en'"),
        ("translation:\n  from: de\n  blob: main\n", 9, "translation.blob: expected a Git blob id; write it: python -m macros articles stamp docs/en/article.md"),
        ("translation:\n  from: de\n", 7, "has a translation block without exactly from and blob; write one: python -m macros articles stamp docs/en/article.md"),
    ],
)  # fmt: skip
def test_a_translation_block_that_says_nothing(block: str, line: int, message: str, root: Path):
    blob = pages.blob_id((root / "docs/de/article.md").read_bytes())
    edit(root, "docs/en/article.md", f"translation:\n  from: de\n  blob: {blob}\n", block.format(blob=blob))
    assert f"docs/en/article.md:{line}: {message}" in found(root)


# Messages, data, ages


def test_messages_of_all_languages_are_compared(root: Path):
    edit(root, "macros/messages/tr.yml", "unit.gb:", "unit.bg:")
    edit(root, "overrides/messages/en.yml", "{date}", "{day}")
    got = found(root)
    assert "macros/messages/de.yml has no 'unit.bg'; did you mean 'unit.gb'?" in "\n".join(got)
    assert [finding for finding in got if "missing 'unit.gb'; macros/messages/de.yml:" in finding]
    assert [finding for finding in got if "article.reviewed: has {day}; overrides/messages/de.yml:" in finding]


def test_messages_have_the_words_of_the_pages(root: Path):
    text = (root / "macros/messages/tr.yml").read_text(encoding="utf-8")
    line = next(number for number, written in enumerate(text.splitlines(), 1) if written.startswith("category.guide:"))
    edit(root, "macros/messages/tr.yml", "category.guide: \"Rehber", "category.guide: \"Hafıza")
    assert found(root) == [f"macros/messages/tr.yml:{line}: category.guide: 'Hafıza' is not used here; write bellek"]


def test_with_wrong_data_all_else_is_still_checked(root: Path):
    edit(root, "data/gpus.yml", "memory_mib: 24564", "memory_mib: much")
    edit(root, "data/checklists.yml", "{model}", "{modle}")
    edit(root, "docs/en/article.md", "In short { #short-answer }", "In short")
    # Which cards there are is unknown then: a typed 24-GB is let pass, not a crash.
    edit(root, "docs/de/article.md", "Vierzig Token", "Die 24-GB-Karte, vierzig Token")
    report = check.check(root)
    kinds = {finding.path for finding in report.errors}
    assert {"data/gpus.yml", "data/checklists.yml", "docs/en/article.md"} <= kinds
    assert not report.rendered


def test_parts_name_existing_sources(root: Path):
    edit(root, "data/parts.yml", "hu-2021-lora", "hu-2021-lore")
    assert any("adapters.all: data/sources.yml has no 'hu-2021-lore'; did you mean 'hu-2021-lora'?" in finding for finding in found(root))


def test_old_facts_and_records_are_warnings(root: Path):
    old = dataset.today() - timedelta(days=check.CHECKED_DAYS + 1)
    edit(root, "data/methods.yml", "checked: 2026-12-01", f"checked: {old}")
    recorded = dataset.today() - timedelta(days=check.RECORDED_DAYS + 1)
    edit(root, "tests/recorded/defaults.json", '"recorded": "2026-12-01"', f'"recorded": "{recorded}"')
    report = check.check(root)
    assert report.errors == []
    assert [str(finding) for finding in report.findings] == [
        f"data/methods.yml:9: warning: full.checked: {old} is 181 days ago; compare it with its sources again",
        "tests/recorded/defaults.json: warning: was recorded 121 days ago; record it anew with tests/record_defaults.py",
    ]


def test_a_schema_that_is_not_current_is_an_error(root: Path):
    edit(root, "data/schemas/gpus.json", '"type"', '"typ"')
    (root / "data/schemas/models.json").unlink()
    message = "is not what records.py says; write it anew: python -m macros schemas"
    assert found(root) == [f"data/schemas/gpus.json: {message}", f"data/schemas/models.json: {message}"]


def test_a_page_that_is_not_text_does_not_hide_the_others(root: Path):
    (root / "docs/en/other.md").write_bytes("## Größe\n".encode("latin-1"))
    edit(root, "docs/tr/article.md", "#short-answer }", "#kısa }")
    got = found(root)
    assert "docs/en/other.md:1: is not UTF-8 text" in got
    assert any(finding.startswith("docs/tr/article.md:12: anchor") for finding in got)


# Stamps


def test_a_stamp_is_gits_own_id():
    """What `printf 'hallo\\n' | git hash-object --stdin` prints."""
    assert pages.blob_id(b"hallo\n") == "4cf5aa5f9a644263dbe3d6e78bcbef45487a802c"


def test_a_stamp_changes_nothing_else(root: Path):
    path = root / "docs/en/article.md"
    before = path.read_text(encoding="utf-8")
    edit(root, "docs/de/article.md", "Der Rest steht", "Alles Weitere steht")
    blob = articles.stamp("docs/en/article.md", root)
    old, new = before.splitlines(), path.read_text(encoding="utf-8").splitlines()
    assert [(a, b) for a, b in zip(old, new, strict=True) if a != b] == [(old[8], f"  blob: {blob}")]


def test_the_first_stamp_writes_the_block(root: Path):
    (root / "docs/en/article.md").write_text(page("en"), encoding="utf-8")
    articles.stamp("docs/en/article.md", root)
    assert found(root) == []


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("docs/de/article.md", "docs/de/article.md is the source of its article; only translations are stamped"),
        ("docs/fr/article.md", "expected the path of a page like docs/en/index.md, got 'docs/fr/article.md'"),
        ("docs/en/missing.md", "expected the path of a page like docs/en/index.md, got 'docs/en/missing.md'"),
    ],
)
def test_what_cannot_be_stamped(path: str, message: str, root: Path):
    with pytest.raises(ValueError) as caught:
        articles.stamp(path, root)
    assert str(caught.value).startswith(message)


def test_any_language_may_be_the_source(root: Path):
    for language in ("de", "tr"):
        text = page(language)
        (root / "docs" / language / "article.md").write_text(text, encoding="utf-8")
    (root / "docs/en/article.md").write_text(page("en"), encoding="utf-8")
    for language in ("de", "tr"):
        articles.stamp(f"docs/{language}/article.md", root, language="en")
    versions = articles.read_all(root)[0]["article.md"]
    assert {code: articles.state(versions, code) for code in TEXTS} == {"de": "current", "en": "source", "tr": "current"}
    assert found(root) == []


def test_the_states_of_an_article(root: Path):
    edit(root, "docs/de/article.md", "Der Rest steht", "Alles Weitere steht")
    (root / "docs/tr/article.md").unlink()
    (root / "docs/de/other.md").unlink()
    known = articles.read_all(root)[0]

    def states(name: str) -> list[str]:
        return [articles.state(known[name], code) for code in TEXTS]

    assert states("article.md") == ["source", "stale", "missing"]
    assert states("other.md") == ["missing", "orphan", "orphan"]


# The commands


def test_the_states_are_listed(root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    edit(root, "docs/de/article.md", "Der Rest steht", "Alles Weitere steht")
    (root / "docs/tr/article.md").unlink()
    monkeypatch.setattr(articles, "ROOT", root)
    assert articles.main([]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["de", "en", "tr"],
        ["article.md", "source", "stale", "missing"],
        ["other.md", "source", "current", "current"],
    ]


def test_pages_are_stamped_by_their_paths(root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    edit(root, "docs/de/article.md", "Der Rest steht", "Alles Weitere steht")
    monkeypatch.setattr(articles, "ROOT", root)
    assert articles.main(["stamp", "docs/en/article.md", "docs/tr/article.md"]) == 0
    assert found(root) == []
    assert articles.main(["stamp", "docs/de/article.md"]) == 2
    assert "docs/de/article.md is the source of its article" in capsys.readouterr().err


def test_schemas_are_written_and_name_every_field(root: Path, monkeypatch: pytest.MonkeyPatch):
    shutil.rmtree(root / "data/schemas")
    monkeypatch.setattr(schemas, "ROOT", root)
    assert schemas.main([]) == 0
    assert found(root) == []
    for name, kind in records.KINDS.items():
        schema = json.loads((root / f"data/schemas/{name}.json").read_text(encoding="utf-8"))
        assert set(schema["additionalProperties"]["properties"]) == set(kind.model_fields)
        assert schema["additionalProperties"]["additionalProperties"] is False


def test_the_command_sorts_counts_and_fails(root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    edit(root, "docs/tr/article.md", "#short-answer }", "#kısa }")
    edit(root, "docs/en/article.md", "In short { #short-answer }", "In short")
    edit(root, "docs/de/other.md", "Der Rest steht", "Alles Weitere steht")
    whole = check.check
    monkeypatch.setattr(check, "check", lambda: whole(root))
    assert check.main([]) == 1
    *lines, summary = capsys.readouterr().out.splitlines()
    places = [line.split(": ")[0].rsplit(":", 1) for line in lines]
    assert places == sorted(places, key=lambda place: (place[0], int(place[1])))
    warnings = [line for line in lines if ": warning: " in line]
    assert len(warnings) == 2
    assert summary == f"{len(lines) - 2} errors, 2 warnings in data, messages and 6 pages"


def test_warnings_alone_do_not_fail(root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    edit(root, "docs/de/other.md", "Der Rest steht", "Alles Weitere steht")
    whole: Callable[[Path], check.Report] = check.check
    monkeypatch.setattr(check, "check", lambda: whole(root))
    assert check.main([]) == 0
    assert capsys.readouterr().out.endswith("0 errors, 2 warnings in data, messages and 6 pages\n")
