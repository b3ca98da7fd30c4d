"""Every claim of three earlier articles on the subject is answered on a page, or there is a reason why not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
LOCALES = ("de", "en", "tr")
CLAIMS: dict[str, dict] = yaml.safe_load((ROOT / "tests" / "claims.yml").read_text(encoding="utf-8"))
# How many claims each of the three articles makes; counted when they were judged.
COUNTS = {"000": 47, "003": 47, "004": 39}
JUDGEMENTS = {"right", "depends", "outdated", "wrong", "n/a"}
ANSWERS = sorted({target for claim in CLAIMS.values() for target in claim.get("at", ())})


def anchors(page: Path) -> set[str]:
    """Return the explicit anchors of a page's headings."""
    return set(re.findall(r"^#{2,} .*\{ #([a-z0-9-]+) \}$", page.read_text(encoding="utf-8"), flags=re.MULTILINE))


def test_all_133_claims_are_listed_once() -> None:
    expected = [f"{article}-{number:02}" for article, count in COUNTS.items() for number in range(1, count + 1)]
    assert list(CLAIMS) == expected
    assert len(expected) == 133


@pytest.mark.parametrize("key", CLAIMS)
def test_a_claim_has_an_answer_or_a_reason(key: str) -> None:
    claim = CLAIMS[key]
    assert claim["claim"]
    assert claim["judged"] in JUDGEMENTS
    assert bool(claim.get("at")) != bool(claim.get("why_not"))


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("target", ANSWERS)
def test_an_answer_exists_in_each_language(target: str, locale: str) -> None:
    page, anchor = target.split("#")
    assert anchor in anchors(ROOT / "docs" / locale / f"{page}.md")
