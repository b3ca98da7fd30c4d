"""What a version lacks is found where it should stand, a wrong call once, and text that nobody translated."""

from __future__ import annotations

from pathlib import Path

import pytest

from macros import pages, parity
from tests.check_sample import LINES, TEXTS, edit, found

SOURCE = """\
---
title: "Titel"
---

## Eins { #one }

Text mit [Link](a.md) und ![Bild](../assets/a.png).

```bash
nvidia-smi
```

!!! note
    Hinweis.

{{ units_note() }}

## Zwei { #two }

Text mit [Link](b.md).
"""


def differences(page: str, language: str = "en") -> list[str]:
    own = pages.parse(page.encode("utf-8"), f"docs/{language}/x.md")
    return [str(finding) for finding in parity.findings(own, pages.parse(SOURCE.encode("utf-8"), "docs/de/x.md"))]


@pytest.mark.parametrize(
    ("left_out", "message"),
    [
        ("## Zwei { #two }\n", "docs/en/x.md:5: lacks heading 2 of docs/de/x.md:18: `## { #two }`"),
        ("```bash\nnvidia-smi\n```\n", "docs/en/x.md:4: lacks code block 1 of docs/de/x.md:9: `bash⏎nvidia-smi`"),
        ("!!! note\n    Hinweis.\n", "docs/en/x.md:4: lacks admonition 1 of docs/de/x.md:13: `note`"),
        ("[Link](a.md)", "docs/en/x.md:4: lacks the link of docs/de/x.md:7: `a.md`"),
        ("[Link](b.md)", "docs/en/x.md:7: lacks the link of docs/de/x.md:20: `b.md`"),
        ("![Bild](../assets/a.png)", "docs/en/x.md:4: lacks the image of docs/de/x.md:7: `../assets/a.png`"),
        ("{{ units_note() }}\n", "docs/en/x.md:4: lacks the call of docs/de/x.md:16: `units_note()`"),
    ],
)
def test_what_is_missing_is_found_behind_what_stands_before_it(left_out: str, message: str):
    assert differences(SOURCE.replace(left_out, "", 1)) == [message]


def test_equal_versions_have_no_differences():
    assert differences(SOURCE) == []


# A wrong call is one finding, not one for each version that it then differs from.


def test_a_wrong_call_in_a_translation_is_found_once(root: Path):
    edit(root, "docs/en/article.md", "llama-3.1-8b", "llama-3.1-8")
    (mistake,) = found(root)
    assert mistake.startswith(f"docs/en/article.md:{LINES['en']['call']}: data/models.yml has no 'llama-3.1-8'")


def test_a_wrong_call_in_the_source_is_found_once(root: Path):
    edit(root, "docs/de/article.md", "| gb }}", "| bg }}")
    mistakes = [line for line in found(root) if ": warning: " not in line]
    assert mistakes == [f"docs/de/article.md:{LINES['de']['call']}: there is no filter 'bg'"]


def test_beside_a_wrong_call_another_difference_is_still_found(root: Path):
    edit(root, "docs/en/article.md", "| gb }}", "| bg }}")
    edit(root, "docs/en/article.md", "The rest is", "{{ units_note() }} The rest is")
    assert len(found(root)) == 2
    assert f"docs/en/article.md:{LINES['en']['link']}: the call `units_note()` is not in docs/de/article.md" in found(root)


# Untranslated text


def test_a_paragraph_may_not_come_from_another_translation_either(root: Path):
    edit(root, "docs/tr/article.md", f"    {TEXTS['tr'][5]}", f"    {TEXTS['en'][5]}")
    assert found(root) == [
        f"docs/tr/article.md:{LINES['tr']['note']}: this paragraph is the same text as docs/en/article.md:18; translate it"
    ]


def test_a_sentence_of_the_front_matter_is_translated(root: Path):
    edit(root, "docs/tr/article.md", f'standfirst: "{TEXTS["tr"][5]}"', f'standfirst: "{TEXTS["de"][5]}"')
    assert found(root) == ["docs/tr/article.md:4: this paragraph is the same text as docs/de/article.md:4; translate it"]


@pytest.mark.parametrize(
    ("language", "text", "name"),
    [
        ("en", "Der Treiber meldet den Speicher, der auf der Karte nutzbar ist, und nicht die Zahl auf der Schachtel.", "German"),
        ("tr", "The driver reports the memory that is usable on the card, and not the number on the box.", "English"),
        ("de", "Sürücü, kartta kullanılabilen belleği bildirir; bu değer kutudaki sayı kadar büyük değil, ama daha doğru bir ölçüdür.", "Turkish"),
    ],
)
def test_a_paragraph_that_reads_like_another_language(language: str, text: str, name: str):
    def of(body: str) -> list[str]:
        page = pages.parse(f"Eins.\n\n{body}\n".encode(), f"docs/{language}/x.md")
        return [str(finding) for finding in parity.untranslated(page, page, [page])]

    assert of(text) == [f"docs/{language}/x.md:3: this paragraph reads like {name}; translate it"]
    # What a tool says or a paper writes is quoted in its own language.
    assert of(f"“{text}”") == []
    assert of("LoRA, QLoRA, BF16, FP32, AdamW, GeForce RTX 4090, RTX 5090, RTX 6000 Ada, H100, H200.") == []


def test_a_missing_message_has_a_line(root: Path):
    path = root / "overrides/messages/en.yml"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    number = next(number for number, line in enumerate(lines, 1) if line.startswith("nav.articles:"))
    path.write_text("".join(lines[: number - 1] + lines[number:]), encoding="utf-8")
    (mistake,) = found(root)
    assert mistake.startswith(f"overrides/messages/en.yml:{number - 1}: missing 'nav.articles'; overrides/messages/de.yml:")
