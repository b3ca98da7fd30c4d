"""Builds the site for tests: the real one, and a small sample with pages made for one purpose each."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCALES = ("de", "en", "tr")
EPOCH = "1796083200"  # 2026-12-01

_TITLES = {
    "de": ("Häuser an der Straße", "Die Größe der Häuser an der Straße. Größe zählt.", "Kurz gesagt"),
    "en": ("Houses in the street", "The size of the houses in the street.", "In short"),
    "tr": ("IŞIK ve ölçüm", "Işık, IŞIK ve ışık. İstanbul’da çalışıyor; ölçüm ve kitaplar.", "Kısaca"),
}


def run_mkdocs(project: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """`mkdocs` in a project, with its output; never raises for a build that fails."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", *arguments], cwd=project, env=environment(variables),
        capture_output=True, text=True, timeout=300, check=False,
    )


def environment(variables: Mapping[str, str] = {}) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if name not in ("SITE_URL", "REPOSITORY_URL", "PREVIEW_PR")}
    fixed = {"SOURCE_DATE_EPOCH": EPOCH, "NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true", "NO_COLOR": "1"}
    return {**own, **fixed, **variables}


def build(project: Path, site: Path, *arguments: str, **variables: str) -> Path:
    """The built site; a build that fails shows what MkDocs said."""
    done = run_mkdocs(project, "build", "--strict", "--site-dir", str(site), *arguments, **variables)
    assert done.returncode == 0, f"mkdocs build failed:\n{done.stdout}{done.stderr}"
    return site


def sample(project: Path) -> Path:
    """A project with the real configuration, theme and code, and a few pages of its own in each language."""
    project.mkdir(parents=True)
    shutil.copy(ROOT / "mkdocs.yml", project)
    for folder in ("overrides", "macros", "data"):
        shutil.copytree(ROOT / folder, project / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "docs" / "assets", project / "docs" / "assets")
    for locale in LOCALES:
        _pages(project / "docs" / locale, locale)
    _named_in_navigation(project)
    # A page that two languages have and Turkish does not have yet.
    for locale in ("de", "en"):
        write(project, f"{locale}/only-two.md", front("Two", category="practice", order=2), "Text.\n")
    return project


def _pages(docs: Path, locale: str) -> None:
    title, text, heading = _TITLES[locale]
    pages = {
        "index.md": front(title, standfirst=text) + f"\n{text} [1](article.md#short-answer)\n",
        "articles/index.md": front(title, template="articles.html") + f"\n{text}\n",
        "article.md": front(title, standfirst=text, category="guide", reviewed="2026-12-01", tags="[LoRA]")
        + f"\n## {heading} {{ #short-answer }}\n\n{text}\n\n## FAQ {{ #faq }}\n\n### Warum? {{ #why }}\n\n{text}\n",
        "second.md": front(f"{title} 2", category="practice", order=1) + f"\n## {heading} {{ #short-answer }}\n\n{text}\n",
        "models/llama-3.1-8b.md": front(f"{title} 4", category="models", published="2026-11-30") + f"\n## {heading} {{ #short-answer }}\n\n{text}\n",
        "draft.md": front("HELD-BACK", category="guide", draft="true") + "\nText.\n",
        "blog/index.md": "# Blog\n",
        "blog/posts/first.md": front(f"{title} 3", date="{created: 2026-11-20}", slug="first", categories=f"[{title.split()[0]}]")
        + f"\n{text}\n\n<!-- more -->\n\n{text}\n",
        "blog/posts/held-back.md": front("HELD-BACK", date="{created: 2026-11-21}", slug="held-back", draft="true") + "\nText.\n",
    }
    for name, content in pages.items():
        (docs / name).parent.mkdir(parents=True, exist_ok=True)
        (docs / name).write_text(content, encoding="utf-8")


def _named_in_navigation(project: Path) -> None:
    """An empty page for each one that mkdocs.yml names and the sample does not need."""
    for name in re.findall(r"^ +- (?:\w+: )?([\w/-]+\.md)$", (project / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE):
        for locale in LOCALES:
            if not (project / "docs" / locale / name).exists():
                write(project, f"{locale}/{name}", front(name), "Text.\n")


def front(title: str, **fields: object) -> str:
    lines = [f'title: "{title}"', f'description: "{title}: what this page answers, for the test of the site."']
    for name, value in fields.items():
        lines.append(f'standfirst: "{value}"' if name == "standfirst" else f"{name}: {value}")
    return "---\n" + "\n".join(lines) + "\n---\n"


def write(project: Path, name: str, *parts: str) -> Path:
    path = project / "docs" / name
    path.write_text("\n".join(parts), encoding="utf-8")
    return path
