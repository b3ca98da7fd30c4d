"""A small guide to plant mistakes in: the real data and messages with two short articles in three languages."""

from __future__ import annotations

import shutil
from pathlib import Path

from macros import articles, check

ROOT = Path(__file__).parent.parent

# One article in three languages, and what the same lines are in each.
TEXTS = {
    "de": ("Wie viel VRAM braucht ein Modell?", "Kurz gesagt", "Es braucht", "Der Rest steht", "hier", "Vierzig Token reichen nicht, um einen langen Absatz zu füllen."),
    "en": ("How much VRAM does a model need?", "In short", "It takes", "The rest is", "here", "Forty tokens are not enough to fill a paragraph of any length."),
    "tr": ("Bir model ne kadar VRAM ister?", "Kısaca", "Gereken", "Gerisi", "burada", "Kırk token, uzun bir paragrafı doldurmaya hiçbir zaman yetmez."),
}  # fmt: skip
DESCRIPTION = "{} 8B, 14B, 32B, 70B: LoRA, QLoRA, Adam, BF16, FP32, NF4 – VRAM, VRAM."
PAGE = """\
---
title: "{title}"
description: "{description}"
standfirst: "{text}"
category: guide
reviewed: 2026-11-30
---

## {short} {{ #short-answer }}

{need}: {{{{ estimate(model="llama-3.1-8b", method="qlora").peak | gb }}}}.

{rest} [{here}](other.md#short-answer).

!!! note
    {text}

```bash
nvidia-smi
```
"""
# Lines of the German page; the others have three more in their front matter.
LINES = {"de": {"title": 2, "h2": 9, "call": 11, "link": 13, "note": 15, "text": 16, "code": 18}}
LINES["en"] = LINES["tr"] = {name: line + (0 if name == "title" else 3) for name, line in LINES["de"].items()}


def page(language: str) -> str:
    title, short, need, rest, here, text = TEXTS[language]
    description = DESCRIPTION.format(text)
    return PAGE.format(title=title, description=description, short=short, need=need, rest=rest, here=here, text=text)


def make(root: Path) -> Path:
    """Write the guide below `root`; it has no findings."""
    for folder in ("data", "macros/messages", "overrides/messages", "tests/recorded"):
        shutil.copytree(ROOT / folder, root / folder)
    (root / "data/measurements.yml").unlink()  # large, and no page here speaks of it
    for language in TEXTS:
        (root / "docs" / language).mkdir(parents=True)
        for name in ("article.md", "other.md"):
            (root / "docs" / language / name).write_text(page(language), encoding="utf-8")
    for language in ("en", "tr"):
        for name in ("article.md", "other.md"):
            articles.stamp(f"docs/{language}/{name}", root)
    return root


def found(root: Path) -> list[str]:
    return [str(finding) for finding in check.check(root).findings]


def edit(root: Path, path: str, old: str, new: str) -> None:
    text = (root / path).read_text(encoding="utf-8")
    assert old in text, f"{old!r} is not in {path}"
    (root / path).write_text(text.replace(old, new, 1), encoding="utf-8")
