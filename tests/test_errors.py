"""Every kind of mistake that an author can make is one finding on its true line, all pages in one run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from macros import template

ROOT = Path(__file__).parent.parent
HEAD = "---\ntitle: Page\ncategory: guide\n---\n\n"  # the text begins on line 6


def findings(environment, body: str, head: str = HEAD) -> list[str]:
    source = head + body
    first = template.first_line(source, template.front_matter(source)[1])
    rendered = template.render(template.front_matter(source)[1], "docs/de/page.md", environment, first, locale="de")
    return [str(finding) for finding in rendered.findings]


RUN = 'estimate(model="llama-3.1-8b", method="lora")'
TWO = 'compare(model="llama-3.1-8b", method=["lora", "qlora"])'
MISTAKES = {
    "unknown word": ("{{ tabel(gpus) }}", "there is no word 'tabel'; did you mean 'table'?"),
    "unknown variable": ("{{ run.peak | gb }}", "there is no word 'run'"),
    "unknown filter": ("{{ 5 | procent }}", "there is no filter 'procent'; did you mean 'percent'?"),
    "unknown test": ("{{ 5 is oddly }}", "there is no test 'oddly'; did you mean 'odd'?"),
    "unknown card": ('{{ gpus["h100-smx"].name }}', "data/gpus.yml has no 'h100-smx'; did you mean 'h100-sxm'?"),
    "unknown model": (
        '{{ estimate(model="llama-3.1-8", method="lora").peak | gb }}',
        "data/models.yml has no 'llama-3.1-8'; did you mean 'llama-3.1-8b'?",
    ),
    "unknown source": (
        '{{ "hu-2021-lroa" | cite }}',
        "data/sources.yml has no 'hu-2021-lroa'; did you mean 'hu-2021-lora'?",
    ),
    "unknown recipe key": (
        '{{ estimate(model="llama-3.1-8b", methode="lora").peak | gb }}',
        "there is no recipe key 'methode'; did you mean 'method'?",
    ),
    "unknown column of a record": (
        '{{ table(gpus, columns=["name", "bandwidth"]) }}',
        "a Gpu has no column 'bandwidth'; did you mean 'bandwidth_gb_s'?",
    ),
    "unknown column of a run": (
        f'{{{{ table({RUN}, columns=["peek"]) }}}}',
        "a run has no column 'peek'; did you mean 'peak'?",
    ),
    "unknown cell": (
        f'{{{{ table({TWO}, rows="model", across="method", cell="logit") }}}}',
        "a run has no column 'logit'; did you mean 'logits'?",
    ),
    "unknown field": (
        "{{ gpus.where(memry_at_least=24) }}",
        "data/gpus.yml has no field 'memry'; did you mean 'memory'?",
    ),
    "unknown part": (f'{{{{ {RUN}.part("logit") | gb }}}}', "there is no part 'logit'; did you mean 'logits'?"),
    "unknown moment": (
        f'{{{{ bars({RUN}, moment="optimizer") }}}}',
        "this run has no moment 'optimizer'; did you mean 'optimizer_step'?",
    ),
    "unknown checklist": (
        f'{{{{ checklist({RUN}, name="bying") }}}}',
        "data/checklists.yml has no 'bying'; did you mean 'buying'?",
    ),
    "unknown attribute": (f"{{{{ {RUN}.peek | gb }}}}", "a run has no 'peek'; did you mean 'peak'?"),
    "private attribute": ("{{ gpus.__class__ }}", "data/gpus.yml has no '__class__'"),
    "unknown argument": (
        '{{ table(gpus, colums=["name"]) }}',
        "table has no argument 'colums'; did you mean 'columns'?",
    ),
    "unknown argument of a filter": (
        "{{ 5 | gb(decimal=1) }}",
        "gb has no argument 'decimal'; it takes value, about, approx",
    ),
    "missing argument": ("{{ bars() }}", "bars: missing a required argument: 'runs'"),
    "value out of range": (
        '{{ estimate(model="llama-3.1-8b", method="lora", sequence_length=0).peak | gb }}',
        "sequence_length must be a whole number from 1 to",
    ),
    "value of the wrong type": (
        '{{ estimate(model="llama-3.1-8b", method="lora", sequence_length="long").peak | gb }}',
        "sequence_length must be a whole number",
    ),
    "key of another method": (
        '{{ estimate(model="llama-3.1-8b", method="full", lora_r=8).peak | gb }}',
        "lora_r",
    ),
    "not a number": ('{{ "many" | number }}', "expected a number, got 'many'"),
    "not bytes": ("{{ 2.5 | gb }}", "expected a whole number of bytes, got 2.5"),
    "not a day": ('{{ "yesterday" | date }}', "expected a day like 2026-11-30, a month or a year, got 'yesterday'"),
    "verdict without a card": (f"{{{{ {RUN}.verdict | verdict }}}}", "there is no verdict without a GPU"),
    "claim of another verdict": (
        f'{{{{ {RUN[:-1]}, gpu="h100-sxm").verdict | claim("does_not_fit") }}}}',
        "the text here claims 'does_not_fit', but it is 'comfortable' now; write the sentence anew",
    ),
    "claim that is false": ("{{ (2 > 3) | claim(true) }}", "the text here claims True, but it is False now"),
    "column without a card": (f'{{{{ table({RUN}, columns=["verdict"]) }}}}', "without a card there is no verdict"),
    "two runs in one cell": (
        f'{{{{ table({TWO}, rows="model", across="model", cell="peak") }}}}',
        "rows and across put two runs into one cell (Llama 3.1 8B, Llama 3.1 8B); name 'method' in rows or across",
    ),
    "table without columns": ("{{ table(gpus) }}", "table needs either columns=[…], or"),
    "no rows": ('{{ table(gpus.where(memory_at_least=9999), columns=["name"]) }}', "there are no rows for this table"),
    "not rows": ('{{ table("gpus", columns=["name"]) }}', "table takes rows: records, runs or parts; got 'gpus'"),
    "not a run": ("{{ bars(gpus) }}", "bars takes a run or runs, made by estimate(…), compare(…) or fits(…)"),
    "not cards": (f"{{{{ fits({RUN}, models) }}}}", "fits takes a run and cards"),
    "bars of one name": (f'{{{{ bars({TWO}, label="model") }}}}', "gives two bars the same name"),
    "unclosed tag": ("{{ gpus", "template syntax: '{{' is not closed"),
    "unclosed tag before another": ("{{ gpus\n\n{{ 5 | gb }}", "template syntax: '{{' is not closed"),
    "wrong bracket": ("{{ gpus['h100-sxm'].name) }}", "template syntax: unexpected ')'"),
    "unknown tag": ("{% tabel %}", "template syntax: encountered unknown tag 'tabel'"),
    "stray brace": ("{{ 5 } }", "template syntax: '{{' is not closed"),
    "arithmetic": ("{{ 1 / 0 }}", "ZeroDivisionError: division by zero"),
}


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.parametrize("above", [0, 3])
def test_a_mistake_is_one_finding_on_its_line(environment, name, above):
    body, message = MISTAKES[name]
    (found,) = findings(environment, "Text.\n" * above + body + "\n\nMore text.\n")
    assert found.startswith(f"docs/de/page.md:{6 + above}: ")
    assert message in found
    assert "\n" not in found and "Traceback" not in found


def test_all_mistakes_of_a_page_in_one_run(environment):
    # What ends the whole template (syntax, arithmetic) stands alone.
    lines = [
        body
        for name, (body, _) in MISTAKES.items()
        if "syntax" not in MISTAKES[name][1] and "ZeroDivision" not in MISTAKES[name][1]
    ]
    found = findings(environment, "\n\n".join(lines))
    assert [int(text.split(":")[1]) for text in found] == [6 + 2 * place for place in range(len(lines))]


def test_a_mistake_is_not_repeated_by_what_depends_on_it(environment):
    found = findings(
        environment,
        '{% set run = estimate(model="nobody", method="lora") %}\n{{ run.peak | gb }} {{ run.part("x") | gb }}\n'
        '{{ bars(run) }} {{ table([run], columns=["peak"]) }} {{ saved(run, run) | gb }} {{ run.peak * 2 + 1 }}\n',
    )
    assert found == ["docs/de/page.md:6: data/models.yml has no 'nobody'"]


def test_an_argument_is_looked_at_even_if_another_is_broken(environment):
    assert len(findings(environment, '{{ table(compare(model="nobody", method="lora"), colums=["peak"]) }}')) == 2


@pytest.mark.parametrize(
    "head",
    [
        "",
        "---\ntitle: x\n---\n",
        "---\ntitle: x\n---\n\n\n\n",
        "---\r\ntitle: x\r\n---\r\n\r\n",
        "\ufeff---\ntitle: x\n---\n",
    ],
)
def test_lines_count_the_front_matter_as_it_stands_in_the_file(environment, tmp_path, head):
    file = tmp_path / "page.md"
    file.write_bytes((head + "Text.\n\n{{ tabel() }}\n").encode())
    source = file.read_text(encoding="utf-8-sig")
    assert findings(environment, "", source) == [
        f"docs/de/page.md:{head.count(chr(10)) + 3}: there is no word 'tabel'; did you mean 'table'?"
    ]


def test_code_that_looks_like_a_comment_stays(environment):
    body = "```bash\necho ${#files[@]}\n```\n\n## Title {#anchor}\n\n{## a remark ##}end\n"
    rendered = template.render(body, "page.md", environment, locale="de")
    assert rendered.findings == ()
    assert rendered.text == "```bash\necho ${#files[@]}\n```\n\n## Title {#anchor}\n\nend\n"


def test_front_matter_may_hold_words_and_their_mistakes_have_a_line(environment):
    source = "---\ntitle: \"{{ gpus['rtx-4090'].box | gb }}\"\ndescription: \"{{ gpus['rtx'].box | gb }}\"\n---\nText\n"
    title = template.render_field(
        source, "title", "{{ gpus['rtx-4090'].box | gb }}", "docs/de/page.md", environment, locale="de"
    )
    assert (title.text, title.findings) == ("24\u00a0GB", ())
    wrong = template.render_field(
        source, "description", "{{ gpus['rtx'].box | gb }}", "docs/de/page.md", environment, locale="de"
    )
    assert str(wrong.findings[0]).startswith("docs/de/page.md:3: data/gpus.yml has no 'rtx'")


# In a real build


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """A project with this repository's code and data and pages of its own."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "macros").symlink_to(ROOT / "macros")
    (folder / "data").symlink_to(ROOT / "data")
    (folder / "docs" / "de").mkdir(parents=True)
    (folder / "mkdocs.yml").write_text(
        "site_name: x\ndocs_dir: docs/de\ntheme: {name: mkdocs}\nextra: {locale: de}\nplugins:\n"
        "  - macros: {module_name: macros, on_error_fail: false, on_undefined: strict}\n",
        encoding="utf-8",
    )
    return folder


def build(project: Path, pages: dict[str, str], *options: str) -> tuple[int, str]:
    for old in (project / "docs" / "de").glob("*.md"):
        old.unlink()
    for name, text in pages.items():
        (project / "docs" / "de" / name).write_text(text, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", *options],
        cwd=project,
        text=True,
        capture_output=True,
        timeout=120,
        env={**os.environ, "DISABLE_MKDOCS_2_WARNING": "true", "NO_MKDOCS_2_WARNING": "1"},
    )
    return run.returncode, run.stderr + run.stdout


def test_a_strict_build_fails_and_names_the_mistakes_of_all_pages(project):
    code, log = build(
        project,
        {
            "index.md": HEAD + "Text.\n\n{{ tabel() }}\n",
            "other.md": HEAD + '{{ gpus["h100-smx"].name }}\n\n{{ 5 | gbb }}\n',
            "broken.md": HEAD + "{{ gpus\n",
            "fine.md": HEAD + "{{ gpus['h100-sxm'].memory | gb }}\n",
        },
        "--strict",
    )
    assert code == 1
    warnings = re.findall(r"WARNING\s+-\s+(.*)", log)
    assert sorted(warnings) == [
        "docs/de/broken.md:6: template syntax: '{{' is not closed",
        "docs/de/index.md:8: there is no word 'tabel'; did you mean 'table'?",
        "docs/de/other.md:6: data/gpus.yml has no 'h100-smx'; did you mean 'h100-sxm'?",
        "docs/de/other.md:8: there is no filter 'gbb'; did you mean 'gb'?",
    ]
    assert "Traceback" not in log


def test_a_preview_shows_the_mistake_in_the_page_and_lives(project):
    """`mkdocs serve` builds without --strict: the build ends well and the page says what is wrong."""
    code, _ = build(project, {"index.md": HEAD + "Before.\n\n{{ tabel() }}\n\nAfter.\n"})
    assert code == 0
    page = (project / "site" / "index.html").read_text(encoding="utf-8")
    assert 'class="vg-error"' in page
    assert "docs/de/index.md:8: there is no word &#39;tabel&#39;" in page
    assert "Before." in page and "After." in page


def test_a_page_without_mistakes_builds_strictly(project):
    code, log = build(
        project,
        {
            "index.md": "# Start\n",
            "page.md": "---\ntitle: \"{{ gpus['rtx-4090'].box | gb }}\"\n---\n\n# Page\n\n"
            "{{ headline(16060522496) }}\n\n```jinja\n{% raw %}{{ kept }}{% endraw %}\n```\n",
        },
        "--strict",
    )
    assert code == 0, log
    page = (project / "site" / "page" / "index.html").read_text(encoding="utf-8")
    assert '<data class="figure" value="16060522496">16,1\u00a0GB (14,96\u00a0GiB)</data>' in page
    assert "{{ kept }}" in page
    assert "<title>24\u00a0GB - x</title>" in page


def test_mistakes_in_data_are_shown_and_fail_a_strict_build(project, tmp_path):
    copy = tmp_path / "data"
    copy.mkdir()
    for file in (ROOT / "data").glob("*.yml"):
        (copy / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    gpus = (copy / "gpus.yml").read_text(encoding="utf-8").splitlines()
    line = next(number for number, text in enumerate(gpus) if "memory_mib:" in text)
    gpus[line] = re.sub(r"memory_mib: *\d+", "memory_mib: 24 GB", gpus[line])
    (copy / "gpus.yml").write_text("\n".join(gpus) + "\n", encoding="utf-8")
    (project / "data").unlink()
    (project / "data").symlink_to(copy)
    try:
        code, log = build(project, {"index.md": HEAD + "{{ 5 | gb }}\n"}, "--strict")
        shown = (project / "site" / "index.html").read_text(encoding="utf-8")
    finally:
        (project / "data").unlink()
        (project / "data").symlink_to(ROOT / "data")
    assert code == 1
    assert f"data/gpus.yml:{line + 1}: " in log and "expected a whole number, got '24 GB'" in log
    assert f"data/gpus.yml:{line + 1}: " in shown
