"""The guide for authors holds what it says: its example renders, its front matter passes, its commands exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from macros import articles, frontmatter, pages, template, yamlfile
from macros.environment import ArticleEnvironment
from macros.language import CODES

ROOT = Path(__file__).parent.parent


def guide(code: str) -> pages.Page:
    path = f"docs/{code}/contribute.md"
    return pages.parse((ROOT / path).read_bytes(), path)


def blocks(code: str) -> dict[str, str]:
    """The code blocks of the guide by their language."""
    return dict(piece.text.split("\n", 1) for piece in guide(code).code_blocks)


@pytest.mark.parametrize("code", CODES)
def test_the_example_of_the_guide_renders(code: str, environment: ArticleEnvironment):
    text = blocks(code)["jinja"].replace("{% raw %}", "").replace("{% endraw %}", "")
    rendered = template.render(text, "guide.md", environment, locale=code)
    assert rendered.findings == ()
    assert 'class="figure"' in rendered.text and "vg-chart" in rendered.text and "vg-verdict" in rendered.text


@pytest.mark.parametrize("code", CODES)
def test_the_front_matter_of_the_guide_has_known_keys(code: str):
    example = yamlfile.parse(blocks(code)["yaml"], "guide.md").value
    page = pages.parse(f"---\n{blocks(code)['yaml']}\n---\n".encode(), f"docs/{code}/x.md")
    assert list(frontmatter.findings(page, {})) == []
    assert {"title", "description", "standfirst", "category", "reviewed", "translation"} <= set(example)


def test_the_guide_fits_on_a_screen_or_two():
    for code in CODES:
        assert len(guide(code).body.splitlines()) <= 65


def test_the_commands_of_the_guide_exist(capsys: pytest.CaptureFixture[str]):
    lines = blocks("de")["bash"].splitlines()
    targets = [line.split()[1] for line in lines if line.startswith("make ")]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert targets and all(f"\n{target}: " in makefile for target in targets)
    assert "python -m macros articles" in lines
    assert articles.main([]) == 0
    assert "contribute.md" in capsys.readouterr().out
