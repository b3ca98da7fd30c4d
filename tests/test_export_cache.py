"""The open data are calculated once for each state of data and code, here with a calculation that counts how often it is asked."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import open_data as hook
import pytest
from mkdocs.exceptions import BuildError

COUNTS = """
import pathlib, sys

asked = pathlib.Path("asked")
asked.write_text(asked.read_text() + "x")
pathlib.Path(sys.argv[2], "models.json").write_text(pathlib.Path("data/models.yml").read_text())
"""


@pytest.fixture
def config(tmp_path: Path) -> SimpleNamespace:
    for folder in ("docs/de", "data", "macros"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "docs" / "de" / "open-data.md").write_text('{{ data_file("models.json") }}', encoding="utf-8")
    (tmp_path / "data" / "models.yml").write_text("first", encoding="utf-8")
    (tmp_path / "macros" / "__main__.py").write_text(COUNTS, encoding="utf-8")
    (tmp_path / "asked").write_text("", encoding="utf-8")
    return SimpleNamespace(
        docs_dir=str(tmp_path / "docs" / "de"), site_dir=str(tmp_path / "site" / "de"),
        config_file_path=str(tmp_path / "mkdocs.yml"), extra={"locale": "de", "serving": False},
    )  # fmt: skip


def built(config: SimpleNamespace) -> tuple[str, int]:
    """What the site then offers, and how often it has been calculated so far."""
    hook.on_pre_build(config)
    hook.on_post_build(config)
    project = Path(config.config_file_path).parent
    return (project / "site" / "data" / "v1" / "models.json").read_text(encoding="utf-8"), len((project / "asked").read_text())


def test_a_second_build_calculates_nothing(config: SimpleNamespace) -> None:
    assert built(config) == ("first", 1)
    assert built(config) == ("first", 1)


@pytest.mark.parametrize("name", ["data/models.yml", "data/new.yml", "macros/estimator.py", "requirements.txt"])
def test_changed_data_or_code_are_calculated_anew_and_the_old_state_goes(config: SimpleNamespace, tmp_path: Path, name: str) -> None:
    built(config)
    (tmp_path / name).write_text("second", encoding="utf-8")
    assert built(config) == ("second" if name == "data/models.yml" else "first", 2)
    assert len(list((tmp_path / ".cache" / "open-data").iterdir())) == 1


def test_other_languages_and_serving_calculate_nothing(config: SimpleNamespace, tmp_path: Path) -> None:
    for extra in ({"locale": "en", "serving": False}, {"locale": "de", "serving": True}):
        config.extra = extra
        hook.on_pre_build(config)
        hook.on_post_build(config)
    assert (tmp_path / "asked").read_text() == "" and not (tmp_path / "site").exists()


def test_a_calculation_that_fails_stops_the_build_and_keeps_nothing(config: SimpleNamespace, tmp_path: Path) -> None:
    (tmp_path / "macros" / "__main__.py").write_text("raise SystemExit('data/models.yml:3: wrong')", encoding="utf-8")
    with pytest.raises(BuildError, match="data/models.yml:3: wrong"):
        built(config)
    assert list((tmp_path / ".cache" / "open-data").iterdir()) == []
