"""`python -m macros changes` on real commits: what a reader would see, loud where a verdict flips, silent for a sentence."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from macros import changes_report, moved, published
from tests import site_build

ARTICLE = """
{% set qlora = estimate(model="qwen3-8b", method="qlora") %}

## A { #short-answer }

TEXT {{ qlora.peak | gb }}.

{{ table(compare(model="qwen3-8b", method=["qlora", "lora"], gpu=["rtx-4090", "h100-sxm"], sequence_length=2560), rows="gpu", across="method", cell="verdict") }}

## B { #cards }

{{ table(gpus.where(box_gb=24), columns=["name", "memory"]) }}
"""


def git(project: Path, *arguments: str) -> str:
    own = ["-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *own, *arguments], cwd=project, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def repository(sample_project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of its own with one commit on main, and a branch whose name is a shell command."""
    project = tmp_path_factory.mktemp("changes") / "project"
    shutil.copytree(sample_project, project)
    for locale in site_build.LOCALES:
        head = site_build.front(f"Article {locale}", standfirst="Text.", category="guide", reviewed="2026-12-01")
        site_build.write(project, f"{locale}/figures.md", head, ARTICLE)
    (project / ".gitignore").write_text("__pycache__/\n", encoding="utf-8")
    git(project, "init", "--quiet", "--initial-branch=main")
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message=first")
    git(project, "branch", "$(touch${IFS}pwned)")
    return project


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "macros", "changes", *arguments]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False, timeout=300)


def changed(repository: Path, edit: Callable[[Path], None], base: str = "main") -> tuple[int, dict[str, Any], str]:
    """Exit code and report of an edit, which is committed and then taken back."""
    try:
        edit(repository)
        git(repository, "commit", "--quiet", "--all", "--message=edit")
        done = run(repository, "--base", "main~1" if base == "main" else base, "--json", "report.json")
        assert done.returncode in (0, 3), done.stderr
        return done.returncode, json.loads((repository / "report.json").read_text(encoding="utf-8")), done.stdout
    finally:
        git(repository, "reset", "--quiet", "--hard", "main~1")


def replaced(name: str, old: str, new: str, after: str = "") -> Callable[[Path], None]:
    def edit(project: Path) -> None:
        text = (project / name).read_text(encoding="utf-8")
        start = text.index(after)
        at = text.index(old, start)
        (project / name).write_text(text[:at] + new + text[at + len(old) :], encoding="utf-8")

    return edit


def test_the_memory_of_one_card(repository: Path) -> None:
    """21 000 MiB instead of 24 564 are 22.0 GB instead of 25.8: less by 14.5 %, too little for LoRA, tight for QLoRA."""
    edit = replaced("data/gpus.yml", "memory_mib: 24564", "memory_mib: 21000", after="rtx-4090:")
    code, report, text = changed(repository, edit)
    assert code == 3 and text.startswith("## ⚠ 2 verdicts flip\n")
    flips = {(flip["row"], flip["column"]): (flip["old"], flip["new"]) for flip in report["flips"]}
    assert flips == {
        ("GeForce RTX 4090", "LoRA"): ("tight", "does_not_fit"),
        ("GeForce RTX 4090", "QLoRA"): ("comfortable", "tight"),
    }
    (figure,) = report["figures"]
    assert (figure["page"], figure["section"], figure["row"]) == ("figures/", "cards", "GeForce RTX 4090")
    assert (figure["old"], figure["new"]) == (str(24564 * 2**20), str(21000 * 2**20))
    assert round(figure["percent"], 1) == -14.5
    assert figure["texts"]["en"] == ["25.8 GB", "22.0 GB"] and set(figure["texts"]) == {"de", "en", "tr"}
    assert figure["texts"]["de"][1].replace("\u00a0", " ") == "22,0 GB"
    assert figure["call"].startswith('table(gpus.where(box_gb=24)')
    assert [(change["record"], change["path"], change["old"], change["new"]) for change in report["data"]] == [
        ("rtx-4090", ["memory_mib"], "24564", "21000")
    ]
    assert report["code"] == [] and report["pages"] == {"added": [], "removed": [], "text_only": []}


def test_the_vocabulary_of_one_model(repository: Path) -> None:
    """23 936 rows less in embedding and head, each of 4096 values: 196 083 712 parameters."""

    def edit(project: Path) -> None:
        replaced("data/models.yml", "151936", "128000", after="qwen3-8b:")(project)
        replaced("data/models.yml", "8190735360", "7994651648", after="qwen3-8b:")(project)

    _, report, _ = changed(repository, edit)
    fields = {tuple(change["path"]): (change["old"], change["new"]) for change in report["data"]}
    assert fields == {("parameters",): ("8190735360", "7994651648"), ("config", "vocab_size"): ("151936", "128000")}
    (figure,) = [figure for figure in report["figures"] if figure["section"] == "short-answer"]
    assert figure["percent"] < 0 and figure["call"] == "qlora.peak | gb"
    assert not [figure for figure in report["figures"] if figure["section"] == "cards"]


def test_one_constant_of_the_estimator(repository: Path) -> None:
    edit = replaced("macros/estimator/fit.py", "COMFORTABLE_PERCENT = 80", "COMFORTABLE_PERCENT = 20")
    code, report, text = changed(repository, edit)
    assert code == 3 and "verdict" in text.splitlines()[0]
    assert {(flip["old"], flip["new"]) for flip in report["flips"]} == {("comfortable", "tight")}
    assert report["code"] == [
        {"file": "macros/estimator/fit.py", "names": ["COMFORTABLE_PERCENT"], "values": {"COMFORTABLE_PERCENT": ["80", "20"]}}
    ]
    assert report["figures"] == [] and report["data"] == []


def test_one_sentence_in_one_language(repository: Path) -> None:
    edit = replaced("docs/de/figures.md", "TEXT", "Ein anderer Satz, kürzer oder länger:")
    code, report, text = changed(repository, edit, "$(touch${IFS}pwned)")
    assert code == 0 and text.startswith("## No figure changes\n")
    assert report["pages"]["text_only"] == ["de/figures/"]
    assert not (repository / "pwned").exists()
    assert all(not report[name] for name in ("flips", "figures", "came", "went", "data", "code", "records"))


def test_a_sentence_that_is_no_longer_true(repository: Path) -> None:
    """The report names it and shows the figures all the same; only publishing has to wait."""

    def edit(project: Path) -> None:
        for locale in site_build.LOCALES:
            replaced(f"docs/{locale}/figures.md", "TEXT", "TEXT{{ (2 > 3) | claim(true) }}")(project)

    code, report, text = changed(repository, edit)
    assert code == 0 and report["figures"] == []
    assert [claim.partition(": ")[2] for claim in report["claims"]] == ["the text here claims True, but it is False now; write the sentence anew"] * 3
    assert "### Sentences that are no longer true (3)" in text


def test_what_comes_and_goes(repository: Path) -> None:
    """A table with one more column, and an uncommitted page in one language."""

    def edit(project: Path) -> None:
        for locale in site_build.LOCALES:
            replaced(f"docs/{locale}/figures.md", '"memory"]', '"memory", "bandwidth_gb_s"]')(project)
            (project / "docs" / locale / "second.md").unlink()

    code, report, _ = changed(repository, edit)
    assert code == 0 and report["figures"] == []
    assert {language for count in report["came"] for language in count["languages"]} == {"de", "en", "tr"}
    cards = json.loads(json.dumps(report["came"]))[0]
    assert cards["section"] == "cards" and "GeForce RTX 4090" in cards["rows"]
    assert report["pages"]["removed"] == ["en/second/", "de/second/", "tr/second/"]


def test_a_wrong_call_and_a_site_that_does_not_build(repository: Path) -> None:
    unknown = run(repository, "--base", "nowhere")
    assert (unknown.returncode, unknown.stderr) == (2, "error: Git knows no commit 'nowhere' here\n")
    option = run(repository, "--base=--output=x")
    assert option.returncode == 2 and not (repository / "x").exists()
    with pytest.raises(AssertionError, match="cannot be built"):
        changed(repository, replaced("docs/de/figures.md", "qlora.peak", "qlora.peek"))


# ---- pairing, on pages made for it


def page(*cells: tuple[str, int], text: str = "") -> published.Page:
    rows = "".join(f'<tr><th scope="row">{name}</th><td><data class="figure" value="{value}">{value}</data></td></tr>' for name, value in cells)
    return published.read_page(
        '<article><h2 id="s">S</h2>'
        f"<p>{text}</p><figure><table><thead><tr><th>N</th><th>V</th></tr></thead><tbody>{rows}</tbody></table></figure></article>"
    )


def shift(old: published.Page, new: published.Page) -> moved.Difference:
    return moved.compare({"en": {"": old}}, {"en": {"": new}})


def test_a_line_that_moves_is_no_change() -> None:
    difference = shift(page(("a", 1), ("b", 2)), page(("b", 2), ("new", 7), ("a", 1)))
    assert difference.moved == [] and difference.went == []
    assert [(count.rows, count.number) for count in difference.came] == [(["new"], 1)]


def test_figures_in_a_rewritten_sentence_are_paired_by_value_and_order() -> None:
    one = '<data class="figure" value="5">5 GB</data>'
    other = one.replace("5", "6")
    assert shift(page(text=f"Needs {one} here."), page(text=f"Here you need {one}.")).moved == []
    (change,) = shift(page(text=f"Needs {one} here."), page(text=f"Here you need {other}.")).moved
    assert (change.old, change.new, change.percent, change.visible) == ("5", "6", 20.0, True)


def test_a_change_below_what_is_printed_is_counted_only() -> None:
    (change,) = shift(page(text='<data value="1000" class="figure">1 GB</data>'), page(text='<data value="1001" class="figure">1 GB</data>')).moved
    assert not change.visible


def test_a_headroom_that_turns_negative_has_no_share() -> None:
    """−754.6 % was once printed for one; the difference is what the two texts say."""
    (change,) = shift(page(text='<data value="1100" class="figure">x</data>'), page(text='<data value="-7200" class="figure">y</data>')).moved
    assert change.percent is None
    (change,) = shift(page(text='<data value="-1000" class="figure">x</data>'), page(text='<data value="-1500" class="figure">y</data>')).moved
    assert change.percent == -50.0


def test_a_range_changes_by_its_upper_end() -> None:
    (change,) = shift(page(text='<data value="10..20" class="figure">x</data>'), page(text='<data value="10..30" class="figure">y</data>')).moved
    assert change.percent == 50.0


# ---- what a stranger's report can do in a comment

EMPTY: dict[str, Any] = {
    "version": 1, "base": "0" * 40, "claims": [], "flips": [], "figures": [], "below_print": 0, "came": [], "went": [],
    "pages": {"added": [], "removed": [], "text_only": []}, "records": [], "data": [], "code": [],
}  # fmt: skip
HOSTILE = '@everyone ![x](https://evil.example/p.png) [a](javascript:x) <img src=x onerror=y> | `b` #12 www.evil.example \n## y'


def test_a_hostile_report_stays_text() -> None:
    change = {"page": HOSTILE, "section": HOSTILE, "row": HOSTILE, "column": "", "call": HOSTILE, "old": "1", "new": "2",
              "percent": 1.0, "texts": {HOSTILE: [HOSTILE, HOSTILE]}}  # fmt: skip
    text = changes_report.markdown({**EMPTY, "claims": [HOSTILE], "figures": [change], "pages": {**EMPTY["pages"], "added": [HOSTILE]}})
    for harmful in ("@everyone", "](http", "https://", "<img", "www.evil", "#12", "\n## y"):
        assert harmful not in text.replace("\\", "") or harmful in ("<img", "](http")
    assert "![" not in text and " <img" not in text and "[a](" not in text
    shown = changes_report.page({**EMPTY, "figures": [change]})
    assert "<img" not in shown and "<script" not in shown


def test_a_long_report_is_cut_between_lines() -> None:
    change = {"page": "p" * 150, "section": "s" * 150, "row": "r" * 150, "column": "", "call": "c" * 150, "old": "1", "new": "2",
              "percent": 1.0, "texts": {"en": ["1 GB", "2 GB"]}}  # fmt: skip
    text = changes_report.markdown({**EMPTY, "figures": [change] * 5000})
    assert len(text) <= changes_report.MOST < 65536
    assert text.rstrip().endswith("the rest is on the page of the preview.")
    assert all(line.startswith("|") and line.endswith("|") for line in text.splitlines() if "ppp" in line)
