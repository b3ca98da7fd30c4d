"""Phrases that say nothing, Turkish officialese and endings, each found on its line of a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from macros import pages, prose, yamlfile
from macros.findings import DataErrors

ROOT = Path(__file__).parent.parent
WORDS = prose.load(ROOT)
PHRASES = yamlfile.read(ROOT / "data/dead_phrases.yml").value


def found(language: str, text: str) -> list[str]:
    page = pages.parse(text.encode("utf-8"), f"docs/{language}/page.md")
    return [f"{finding.line}: {finding.message}" for finding in prose.findings(page, {24}, WORDS)]


def test_each_language_has_forty_phrases_with_something_better():
    for language, wanted in {
        "de": {"es ist wichtig zu beachten", "zusammenfassend", "tauchen wir ein", "Sinn mach*", "in 202*"},
        "en": {"delve*", "in today’s fast-paced", "leverage*", "it’s worth noting"},
        "tr": {"önemli bir rol oyna*", "unutmayın ki", "günümüzde", "bu bağlamda", "sonuç olarak"},
    }.items():
        assert len(PHRASES[language]) >= 40
        assert wanted <= set(PHRASES[language])
        assert all(PHRASES[language].values())


@pytest.mark.parametrize(("language", "phrase"), [(language, phrase) for language in PHRASES for phrase in PHRASES[language]])
def test_every_phrase_is_found_in_a_sentence(language: str, phrase: str):
    typed = phrase.replace("*", "6" if phrase == "in 202*" else "")
    assert f"3: {phrase.removesuffix('*')!r} is an empty phrase; write {PHRASES[language][phrase]}" in found(language, f"Eins.\n\nZwei {typed} drei.\n")
    capital = {"i": "İ"}.get(typed[0], typed[0].upper()) if language == "tr" else typed[0].upper()
    assert any("is an empty phrase" in line for line in found(language, f"{capital}{typed[1:]} x.\n"))
    # Who discusses a phrase quotes it; across a line break it is the same phrase.
    assert found(language, f"Ein „{typed}“ fehlt.\n") == []
    assert typed.count(" ") == 0 or found(language, typed.replace(" ", "\n", 1)) != []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ölçüm burada yapılmaktadır. Sonra değer yazar.", []),
        ("Ölçüm yapılmaktadır.\n\nBellek artmaktadır.", ["3: 'artmaktadır': -mektedir a second time; write the verb in the aorist"]),
        ("Değer artmaktadır, azalmaktadırlar.", ["1: 'azalmaktadırlar': -mektedir a second time; write the verb in the aorist"]),
    ],
)
def test_mektedir_more_than_once_is_a_tone(text: str, expected: list[str]):
    assert found("tr", text) == expected


PLAIN = ["Kart yeter.", "Bellek azalır.", "Bu değeri azaltır.", "Tepe burada oluşur.", "Ölçüm bunu gösterir.", "Nedeni nadir."]
STIFF = ["Kart yeterlidir.", "Neden budur.", "Bellek yoktur.", "Amaç bu olmaktadır."]


def test_dir_in_more_than_a_third_of_the_sentences_is_a_tone():
    assert found("tr", "\n\n".join(PLAIN + STIFF[:3])) == []
    assert found("tr", "\n\n".join(PLAIN + STIFF)) == ["13: 4 of 10 sentences end in -dır; at most a third may"]
    # Of few sentences a third is one: that is grammar.
    assert found("tr", "Bellek burada yoktur. Neden budur.") == []


@pytest.mark.parametrize("ending", ["VRAM’e", "VRAM’in", "GiB’ı", "24\u00a0GB’ta", "%50’si"])
def test_no_ending_on_vram_a_unit_or_a_percentage(ending: str):
    assert any("no ending on" in line for line in found("tr", f"Bu {ending} değer.\n"))


def test_lists_with_mistakes_name_their_lines(tmp_path: Path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/discouraged.yml").write_text("de:\n  Wort:\nfr:\n  mot: parole\n", encoding="utf-8")
    (tmp_path / "data/dead_phrases.yml").write_text("en:\n  '*': x\n", encoding="utf-8")
    with pytest.raises(DataErrors) as caught:
        prose.load(tmp_path)
    assert [str(finding) for finding in caught.value.findings] == [
        "data/dead_phrases.yml:2: *: expected what to write instead",
        "data/discouraged.yml:2: Wort: expected what to write instead",
        "data/discouraged.yml:3: expected forms for de, en, tr, got 'fr'",
    ]


@pytest.mark.parametrize(
    ("language", "text", "message"),
    [
        ("de", "8.192 Token", "'8.192': here numbers are written like 2048 and 32.768"),
        ("en", "8,192 tokens", "'8,192': here numbers are written like 2048 and 32,768"),
        ("tr", "8.192 token", "'8.192': here numbers are written like 2048 and 32.768"),
        ("de", "32.768 Token, 1.234.567 Token, TRL 1.16, am 1.12.2026, 2,048 Bit", None),
        ("en", "32,768 tokens, 1,234,567 tokens, TRL 1.16, 0.127 bits", None),
    ],
)
def test_digits_are_grouped_from_five_on(language: str, text: str, message: str | None):
    assert found(language, f"Eins.\n\nZwei {text} drei.\n") == ([f"3: {message}"] if message else [])


def test_the_front_matter_is_read_like_the_text():
    head = '---\ntitle: "Mit 7.3 GB"\ndescription: "80% and a {{ estimate(x=\'5 GB\') | gb }} delve"\nstandfirst: "“7.3 GB” is what it says"\n---\n'
    assert found("en", head) == [
        "2: '7.3 GB' is typed; let a word of the vocabulary compute it",
        "3: 'delve' is an empty phrase; write the first sentence on the matter",
    ]
    assert found("tr", '---\ntitle: "VRAM’e sığar mı, 80% mı?"\n---\n') == [
        "2: '0%': here percent is written like %50",
        "2: 'VRAM’e': no ending on a unit or a percentage; put a noun behind it",
    ]


def test_the_text_of_a_link_is_no_hiding_place():
    assert found("en", "See [7.3\u00a0GB](other.md).\n") == ["1: '7.3\\xa0GB' is typed; let a word of the vocabulary compute it"]
