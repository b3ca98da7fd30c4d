"""What several tests share: the site, built once per run."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from macros import dataset, template, vocabulary
from macros.environment import ArticleEnvironment
from tests import check_sample, site_build


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real site, built strictly."""
    return site_build.build(site_build.ROOT, tmp_path_factory.mktemp("real") / "site")


@pytest.fixture(scope="session")
def sample_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small project to build; tests that change it copy it first."""
    return site_build.sample(tmp_path_factory.mktemp("sample") / "project")


@pytest.fixture(scope="session")
def sample_site(sample_project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small project, built."""
    return site_build.build(sample_project, tmp_path_factory.mktemp("sample") / "site")


@pytest.fixture(scope="session")
def preview_site(sample_project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small project, built as the preview of a pull request is."""
    variables = {"PREVIEW_PR": "12", "PREVIEW_COMMIT": "abc", "SITE_URL": "https://example.org/previews/pr-12/"}
    return site_build.build(sample_project, tmp_path_factory.mktemp("preview") / "site", **variables)


@pytest.fixture(scope="session")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small guide without findings; tests that change it take `root`."""
    return check_sample.make(tmp_path_factory.mktemp("check") / "guide")


@pytest.fixture
def root(guide: Path, tmp_path: Path) -> Path:
    """A copy of the small guide to plant a mistake in."""
    return Path(shutil.copytree(guide, tmp_path / "guide"))


@pytest.fixture(scope="module")
def environment() -> ArticleEnvironment:
    """The words of articles over the real data."""
    return ArticleEnvironment(vocabulary.vocabulary(dataset.load(site_build.ROOT), site_build.ROOT))


@pytest.fixture
def say(environment: ArticleEnvironment) -> Callable[..., str]:
    """Render a text in one language; a mistake in it fails the test."""

    def render(text: str, code: str = "en") -> str:
        rendered = template.render(text, "docs/en/page.md", environment, locale=code)
        assert rendered.findings == ()
        return rendered.text

    return render


@pytest.fixture
def value(environment: ArticleEnvironment) -> Callable[[str], Any]:
    """The value of an expression, as it is before it becomes text."""

    def compute(expression: str) -> Any:
        environment.take_mistakes()
        result = environment.compile_expression(expression, undefined_to_none=False)(locale="en")
        assert environment.take_mistakes() == []
        return result

    return compute


@pytest.fixture
def mistakes(environment: ArticleEnvironment) -> Callable[[str], list[str]]:
    """What is said of the mistakes in a text."""

    def render(text: str) -> list[str]:
        return [finding.message for finding in template.render(text, "docs/en/page.md", environment, locale="en").findings]

    return render
