"""`make serve` in a sample: an edit of article, data, messages or code is seen, a mistake is shown in the page, and it lives on."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import site_build
from tests.site_build import front, write

PATIENCE = 60  # seconds for a build on a busy machine


class Preview:
    """A running `mkdocs serve`."""

    def __init__(self, project: Path, address: str, process: subprocess.Popen[bytes]) -> None:
        self.project, self.address, self.process = project, address, process

    def page(self, path: str) -> str:
        with urllib.request.urlopen(self.address + path, timeout=PATIENCE) as response:
            return response.read().decode("utf-8")

    def wait_for(self, path: str, words: str) -> str:
        end = time.monotonic() + PATIENCE
        page = ""
        while time.monotonic() < end:
            assert self.process.poll() is None, "mkdocs serve has ended"
            try:
                page = self.page(path)
            except (urllib.error.URLError, ConnectionError):
                page = ""
            if words in page:
                return page
            time.sleep(0.3)
        raise AssertionError(f"{path} never showed {words!r}")

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.project / name
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{name} has no {old!r}"
        path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture(scope="module")
def preview(sample_project: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Preview]:
    project = Path(shutil.copytree(sample_project, tmp_path_factory.mktemp("serve") / "project"))
    write(project, "tr/second.md", front("İkinci", category="practice"), '{{ models["llama-3.1-8b"].name }}', "{{ 1 | gb }}", "")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with open(project / "log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "mkdocs", "serve", "--dev-addr", f"127.0.0.1:{port}"],
            cwd=project, env=site_build.environment(), stdout=log, stderr=log,
        )
        yield Preview(project, f"http://127.0.0.1:{port}/", process)
        process.terminate()
        process.wait(timeout=20)


def test_all_languages_and_drafts_are_shown(preview: Preview) -> None:
    preview.wait_for("", "Türkçe")
    for locale, word in (("de", "Entwurf"), ("en", "Draft"), ("tr", "Taslak")):
        page = preview.wait_for(f"{locale}/draft/", "HELD-BACK")
        assert f'<strong class="vg-draft">{word}</strong>' in page


def test_an_edited_article_is_seen(preview: Preview) -> None:
    preview.edit("docs/en/article.md", "The size of the houses", "The width of the houses")
    preview.wait_for("en/article/", "The width of the houses")


def test_edited_data_is_seen(preview: Preview) -> None:
    preview.edit("data/models.yml", "name: Llama 3.1 8B\n", "name: Llama in another name\n")
    preview.wait_for("tr/second/", "Llama in another name")


def test_edited_messages_are_seen(preview: Preview) -> None:
    preview.edit("macros/messages/tr.yml", 'unit.gb: "{number}\\u00A0GB"', 'unit.gb: "{number}\\u00A0gigabayt"')
    preview.wait_for("tr/second/", "gigabayt")


def test_edited_code_is_seen(preview: Preview) -> None:
    preview.edit("macros/figures.py", 'class_="figure"', 'class_="figure edited"')
    preview.wait_for("tr/second/", 'class="figure edited"')


def test_a_mistake_is_shown_in_the_page_and_mended(preview: Preview) -> None:
    preview.edit("docs/tr/second.md", "{{ 1 | gb }}", "{{ no_such_word(1) }}")
    page = preview.wait_for("tr/second/", "vg-error")
    assert re.search(r"docs/tr/second\.md:8: [^<]*no_such_word", page)
    preview.edit("docs/tr/second.md", "{{ no_such_word(1) }}", "{{ 7000 | gb }}")
    preview.wait_for("tr/second/", 'value="7000"')
    assert "vg-error" not in preview.page("tr/second/")
