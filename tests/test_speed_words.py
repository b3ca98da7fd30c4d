"""How articles say speed, time and cost."""

from __future__ import annotations

import re

import pytest

from macros import template

SPEED = '{% set run = estimate(model="llama-3.1-8b", method="qlora", sequence_length=4096, gpu="a100-80gb") %}'


def test_speed_duration_and_cost(say, value):
    """5 million tokens; 0.48 and 0.71 of the peak rate stand in data/utilisations.yml, 312 TFLOPS on NVIDIA's sheet."""
    run = value('estimate(model="llama-3.1-8b", method="qlora", sequence_length=4096, gpu="a100-80gb")')
    per_token = run.estimate.flops_per_step / 4096
    assert run.tokens_per_second.low == pytest.approx(0.48 * 312e12 / per_token)
    assert run.tokens_per_second.high == pytest.approx(0.71 * 312e12 / per_token)
    low, high = round(run.tokens_per_second.low, -2), round(run.tokens_per_second.high, -2)
    plain = {code: re.sub("<[^>]*>", "", say(SPEED + "{{ run.tokens_per_second | rate }}", code)) for code in ("de", "en", "tr")}
    assert plain["en"] == f"{low:.0f}–{high:.0f}\u00a0tokens/s"
    assert plain["de"] == f"{low:.0f}–{high:.0f}\u00a0Token/s"
    assert plain["tr"] == f"{low:.0f}–{high:.0f}\u00a0token/sn"
    hours = [5_000_000 / rate / 3600 for rate in (run.tokens_per_second.high, run.tokens_per_second.low)]
    assert all(0.1 <= hour < 1 for hour in hours)
    minutes = "–".join(f"{hour * 60:.0f}" for hour in hours)
    spans = {"de": "Minuten", "en": "minutes", "tr": "dakika"}
    for code, word in spans.items():
        text = say(SPEED + "{{ duration_of(run, dataset_tokens=5_000_000) | duration }}", code)
        assert re.sub("<[^>]*>", "", text) == f"{minutes}\u00a0{word}"
    money = value('cost(estimate(model="llama-3.1-8b", method="qlora", sequence_length=4096, gpu="a100-80gb"), 5_000_000, 3)')
    assert (money.low, money.high) == pytest.approx([3 * hour for hour in hours])


def test_a_table_of_speeds_says_what_they_rest_on(say):
    runs = 'compare(model="llama-3.1-8b", method=["lora", "qlora"], gpu="a100-80gb", dataset_tokens=10_000_000, price_per_hour=2)'
    text = say("{{ table(" + runs + ', columns=["method", "tokens_per_second", "duration", "cost"]) }}')
    assert "from the slowest to the fastest published run" in text
    assert "Duration for 10 million tokens in 1 epoch" in text.replace("\u00a0", " ") and "Cost at 2.00 per GPU and hour" in text
    grid = say("{{ table(" + runs + ', rows="method", across="gpu", cell="duration") }}')
    assert "Duration for 10 million tokens in 1 epoch" in grid.replace("\u00a0", " ")
    none = say('{{ table(estimate(model="llama-3.1-8b", method="full", gpu="rtx-4090"), columns=["model", "tokens_per_second"]) }}')
    assert "vg-none" in none


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SPEED + "{{ run.duration | duration }}", "a duration needs dataset_tokens"),
        (SPEED + "{{ estimate(model='llama-3.1-8b', method='lora', gpu='t4').tokens_per_second | rate }}", "no published run is like this one"),
        (SPEED + "{{ duration_of(run, dataset_tokens=-1) | duration }}", "dataset_tokens must be a whole number from 0"),
    ],
)
def test_a_speed_that_nobody_knows_is_a_finding(environment, text, message):
    rendered = template.render(text, "docs/en/page.md", environment, locale="en")
    assert any(message in finding.message for finding in rendered.findings), rendered.findings
