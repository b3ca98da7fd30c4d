"""The ranges of utilisation against published speeds that were held apart; the speeds that the ranges rest on."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from macros.dataset import Dataset, load
from macros.estimator import Estimate
from macros.estimator.speed import FULL_PASS
from macros.recipes import estimate_keys
from macros.speeds import speeds_of
from macros.records import Throughput

ROOT = Path(__file__).parent.parent
# The bound: how far a published speed may lie from the nearest end of our range.
FACTOR = 1.5


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return load(ROOT)


def estimated(dataset: Dataset, run: Throughput) -> Estimate:
    shape = {"model": run.model} if run.model else {"config": run.config}
    # Each recipe stands for itself: a preset would add to it.
    return estimate_keys(dataset, {"gpu": run.gpu, **shape, **run.recipe})


def utilisation(dataset: Dataset, run: Throughput) -> float:
    """The share of the peak rate that a run reached: its own FLOPs per second and card."""
    found = estimated(dataset, run)
    recipe = run.recipe
    tokens = recipe["micro_batch_size"] * recipe["sequence_length"] * recipe.get("gradient_accumulation_steps", 1)
    rate = run.tokens_per_second / recipe.get("num_gpus", 1)
    peak = dataset.gpus[run.gpu].bf16_tflops
    assert peak is not None
    return found.flops_per_step / tokens * rate / (peak * 1e12)


def distance(dataset: Dataset, run: Throughput) -> float:
    """By which factor the published speed is outside our range; 1 inside."""
    rate = estimated(dataset, run).tokens_per_second
    assert rate is not None, run.key
    return max(1, rate.low / run.tokens_per_second, run.tokens_per_second / rate.high)


def of(dataset: Dataset, used: str) -> list[Throughput]:
    return [run for run in dataset.throughputs if run.used == used]


def test_speeds_held_apart_are_within_the_factor(dataset: Dataset) -> None:
    held = of(dataset, "check")
    far = {run.key: round(factor, 2) for run in held if (factor := distance(dataset, run)) > FACTOR}
    assert far == {}
    long = [run for run in held if run.recipe["micro_batch_size"] * run.recipe["sequence_length"] >= FULL_PASS]
    assert len(long) >= 40 and len({run.source for run in long}) >= 6
    inside = sum(distance(dataset, run) == 1 for run in long)
    assert inside >= 0.6 * len(long)


def test_ranges_are_those_of_their_runs(dataset: Dataset) -> None:
    """Slowest rounded down, fastest up, to a hundredth; and no wider than a reader can use."""
    for record in dataset.utilisations:
        runs = [run for run in of(dataset, "range") if run.gpu in record.cards and run.recipe["method"] in record.methods]
        shares = [utilisation(dataset, run) for run in runs]
        assert len(shares) >= 2, record.key
        assert math.floor(min(shares) * 100) / 100 == pytest.approx(record.low), (record.key, shares)
        assert math.ceil(max(shares) * 100) / 100 == pytest.approx(record.high), (record.key, shares)
        assert record.high / record.low <= 2.3
        assert {source for source in record.sources.values()} <= {run.source for run in runs}


def test_no_card_has_two_ranges_for_a_method(dataset: Dataset) -> None:
    pairs = [(gpu, method) for record in dataset.utilisations for gpu in record.cards for method in record.methods]
    assert len(pairs) == len(set(pairs))


def test_no_published_speed_passes_the_peak(dataset: Dataset) -> None:
    """Nobody computes faster than the card; the one that would is named and used for nothing."""
    for run in dataset.throughputs:
        impossible = run.key == "torchtune-a6000-llama-3.1-8b-full"
        assert (utilisation(dataset, run) > 1) == impossible, run.key
        assert (run.used == "neither") == (run.reason is not None), run.key


def test_no_speed_without_published_runs(dataset: Dataset) -> None:
    """Cards, methods and settings that no run backs give no figure."""
    known = {"model": "llama-3.1-8b", "method": "qlora", "gpu": "a100-80gb"}
    assert estimate_keys(dataset, known).tokens_per_second is not None
    for change in (
        {"gpu": "mi300x"},
        {"gpu": "t4"},
        {"gpu": "rtx-4090", "method": "full"},
        {"model": "qwen3-30b-a3b", "method": "lora"},
        {"model": "qwen3.5-4b", "method": "lora"},
        {"quantization": "int8"},
        {"use_dora": True},
        {"method": "full", "precision": "fp32"},
        {"num_gpus": 16},
    ):
        keys = {**known, **change}
        assert estimate_keys(dataset, keys).tokens_per_second is None, change


def test_hours_and_cost_by_hand(dataset: Dataset) -> None:
    """50 million tokens, three times, on two cards at 2.50 an hour each."""
    keys = {"model": "llama-3.1-8b", "method": "lora", "gpu": "a100-80gb", "num_gpus": 2, "sequence_length": 4096}
    asked = {"dataset_tokens": 50_000_000, "epochs": 3, "price_per_hour": 2.5}
    found = estimate_keys(dataset, {**keys, **asked})
    assert found.tokens_per_second and found.hours and found.cost
    for time, rate, money in (
        (found.hours.low, found.tokens_per_second.high, found.cost.low),
        (found.hours.high, found.tokens_per_second.low, found.cost.high),
    ):
        assert time == pytest.approx(150_000_000 / rate / 3600)
        assert money == pytest.approx(time * 5)
    plain = estimate_keys(dataset, keys)
    assert plain.hours is None and plain.cost is None
    assert estimate_keys(dataset, {**keys, "dataset_tokens": 1000}).cost is None


def test_short_passes_open_the_range_downwards(dataset: Dataset) -> None:
    """A pass of 512 tokens may take as long as one of 2048, and not longer."""
    keys = {"model": "llama-3.1-8b", "method": "lora", "gpu": "a100-80gb", "attention": "flash"}
    short = estimate_keys(dataset, {**keys, "sequence_length": 512}).tokens_per_second
    full = estimate_keys(dataset, {**keys, "sequence_length": 2048}).tokens_per_second
    assert short and full
    # FLOPs per token differ by the attention only.
    assert short.low * 4 == pytest.approx(full.low, rel=0.1)
    assert short.high == pytest.approx(full.high, rel=0.1)


def test_the_rows_of_speeds_say_what_the_runs_say(dataset: Dataset) -> None:
    held = of(dataset, "check")
    rows = speeds_of(dataset, held)
    assert sum(row.runs for row in rows) == len(held)
    assert [row.runs for row in rows] == sorted((row.runs for row in rows), reverse=True)
    for row in rows:
        factors = [distance(dataset, run) for run in held if run.gpu == row.gpu.key]
        assert row.factor == max(factors) <= FACTOR
        assert row.inside * len(factors) == pytest.approx(factors.count(1))
    unknown = next(run for run in dataset.throughputs if run.used == "range").model_copy(update={"gpu": "t4"})
    with pytest.raises(ValueError, match="has no range for such a run"):
        speeds_of(dataset, [unknown])
