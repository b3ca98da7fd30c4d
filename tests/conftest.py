"""What several tests share: the site, built once per run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

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
def guide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small guide without findings; tests that change it take `root`."""
    return check_sample.make(tmp_path_factory.mktemp("check") / "guide")


@pytest.fixture
def root(guide: Path, tmp_path: Path) -> Path:
    """A copy of the small guide to plant a mistake in."""
    return Path(shutil.copytree(guide, tmp_path / "guide"))
