"""Each public report of a run that fits, fails or was measured is explained by the estimate, or there is a line why not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from macros import recipes
from macros.dataset import Dataset, load

ROOT = Path(__file__).resolve().parent.parent
REPORTS: list[dict[str, Any]] = yaml.safe_load((ROOT / "tests" / "reports.yml").read_text(encoding="utf-8"))
EXPECTATIONS = {"fits", "event", "read", "part", "weights", "host", "mapped", "beyond"}
CHECKS = [
    pytest.param(check, id=f"{report['at'].removeprefix('https://')}-{number}")
    for report in REPORTS
    for number, check in enumerate(report.get("checks", ()))
]
# A driver's figure may stand above the range by as much as it does in our own runs; see tests/test_measurements.py.
ABOVE = 1.07


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return load(ROOT)


def test_each_report_has_a_check_or_a_reason() -> None:
    assert len({report["at"] for report in REPORTS}) == len(REPORTS)
    for report in REPORTS:
        assert report["said"]
        assert sum(key in report for key in ("checks", "why_not", "gpus")) == 1, report["at"]
        for check in report.get("checks", ()):
            assert set(check) & EXPECTATIONS, report["at"]
            assert ("beyond" in check) == ("because" in check), report["at"]


@pytest.mark.parametrize("check", CHECKS)
def test_the_estimate_explains_a_report(check: dict[str, Any], dataset: Dataset) -> None:
    found = recipes.estimate_keys(dataset, check["recipe"])
    beside = found.beside
    assert beside is not None
    if check.get("fits") is True:
        assert found.verdict != "does_not_fit"
    if check.get("fits") is False:
        card = dataset.gpus[check["recipe"]["gpu"]].memory
        assert beside.events[check["event"]] > card if "event" in check else found.verdict != "comfortable"
    if "read" in check:
        assert found.peak_bytes <= check["read"] <= found.device_bytes.high * ABOVE
    if "beyond" in check:
        assert check["beyond"] > found.device_bytes.high * ABOVE
    if "part" in check:
        moment, part, size = check["part"]
        assert found.moments[moment].parts[part] == pytest.approx(size, rel=0.15)
    if "weights" in check:
        low, high = check["weights"]
        assert low <= sum(found.moments["optimizer_step"].parts[part] for part in ("weights", "adapters")) <= high
    if "host" in check:
        moment, size = check["host"]
        assert beside.host[moment] > 0.85 * size
    if "mapped" in check:
        assert beside.host["load"] < check["mapped"] < beside.host["mapped"]


def test_cards_offer_what_drivers_report(dataset: Dataset) -> None:
    (report,) = [report for report in REPORTS if "gpus" in report]
    assert {key: dataset.gpus[key].memory_mib for key in report["gpus"]} == report["gpus"]
