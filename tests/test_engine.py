"""Building a tree that a stranger wrote: its code sees no secret, and its mistakes stop the build even when nothing is printed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests import site_build

# A word of the vocabulary that a hostile branch could add: it writes the environment into every page.
READER = '''

_render = on_pre_page_macros


def on_pre_page_macros(env):
    import os

    _render(env)
    env.markdown += "\\n\\nENVIRONMENT " + " ".join(f"{name}={value}" for name, value in os.environ.items())
'''


def build(project: Path, site: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(site_build.ROOT / "overrides" / "engine.py"), str(project), str(site)]
    return subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False, timeout=300)


def test_a_macro_that_reads_the_environment_finds_no_secret(sample_project: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(sample_project, project)
    with open(project / "macros" / "__init__.py", "a", encoding="utf-8") as file:
        file.write(READER)
    secrets = {"GITHUB_TOKEN": "ghs_secret1", "ACTIONS_RUNTIME_TOKEN": "secret2", "PREVIEW_TOKEN": "secret3"}
    done = build(project, tmp_path / "site", **secrets)
    assert done.returncode == 0, done.stderr
    pages = "".join(file.read_text(encoding="utf-8") for file in (tmp_path / "site").rglob("*.html"))
    assert "ENVIRONMENT" in pages and "PATH=" in pages
    assert not [secret for secret in secrets.values() if secret in pages]


def test_a_mistake_stops_a_quiet_build(sample_project: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(sample_project, project)
    site_build.write(project, "de/second.md", site_build.front("Zwei"), "{{ nothing_of_the_kind | gb }}\n")
    done = build(project, tmp_path / "site")
    assert done.returncode == 1 and "docs/de/second.md:6" in done.stderr
