"""Figures as text, against the 53 cases of the typography study (compared there with Babel and with Intl)."""

from __future__ import annotations

import json
import random
import re
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

import pytest

from macros.estimator import units
from macros.language import exact, load

# Source: section 12 of the project's study of typography and number formats for German, English and Turkish.
CASES = json.loads(r"""
[
  {"id": 1, "kind": "integer", "value": "0", "de": "0", "en": "0", "tr": "0"},
  {"id": 2, "kind": "integer", "value": "7", "de": "7", "en": "7", "tr": "7"},
  {"id": 3, "kind": "integer", "value": "24", "de": "24", "en": "24", "tr": "24"},
  {"id": 4, "kind": "tokens (4 digits)", "value": "2048", "de": "2048", "en": "2048", "tr": "2048"},
  {"id": 5, "kind": "tokens (4 digits)", "value": "8192", "de": "8192", "en": "8192", "tr": "8192"},
  {"id": 6, "kind": "integer (5+ digits)", "value": "32768", "de": "32.768", "en": "32,768", "tr": "32.768"},
  {"id": 7, "kind": "integer (5+ digits)", "value": "128256", "de": "128.256", "en": "128,256", "tr": "128.256"},
  {"id": 8, "kind": "integer (5+ digits)", "value": "41943040", "de": "41.943.040", "en": "41,943,040", "tr": "41.943.040"},
  {"id": 9, "kind": "decimal", "value": "0.5", "de": "0,5", "en": "0.5", "tr": "0,5"},
  {"id": 10, "kind": "decimal", "value": "0.516", "de": "0,516", "en": "0.516", "tr": "0,516"},
  {"id": 11, "kind": "decimal", "value": "14.96", "de": "14,96", "en": "14.96", "tr": "14,96"},
  {"id": 12, "kind": "decimal", "value": "-1.8", "de": "\u22121,8", "en": "\u22121.8", "tr": "\u22121,8"},
  {"id": 13, "kind": "rounding, 2 digits", "value": "0.125", "de": "0,13", "en": "0.13", "tr": "0,13"},
  {"id": 14, "kind": "rounding, 0 digits", "value": "2.5", "de": "3", "en": "3", "tr": "3"},
  {"id": 15, "kind": "GB", "value": "24", "de": "24\u00a0GB", "en": "24\u00a0GB", "tr": "24\u00a0GB"},
  {"id": 16, "kind": "GB", "value": "16.06", "de": "16,1\u00a0GB", "en": "16.1\u00a0GB", "tr": "16,1\u00a0GB"},
  {"id": 17, "kind": "GB", "value": "5.7", "de": "5,7\u00a0GB", "en": "5.7\u00a0GB", "tr": "5,7\u00a0GB"},
  {"id": 18, "kind": "GB", "value": "112", "de": "112\u00a0GB", "en": "112\u00a0GB", "tr": "112\u00a0GB"},
  {"id": 19, "kind": "GB", "value": "128.5", "de": "129\u00a0GB", "en": "129\u00a0GB", "tr": "129\u00a0GB"},
  {"id": 20, "kind": "GB", "value": "1128.9", "de": "1129\u00a0GB", "en": "1129\u00a0GB", "tr": "1129\u00a0GB"},
  {"id": 21, "kind": "GB", "value": "0.67", "de": "0,67\u00a0GB", "en": "0.67\u00a0GB", "tr": "0,67\u00a0GB"},
  {"id": 22, "kind": "GiB", "value": "14.96", "de": "14,96\u00a0GiB", "en": "14.96\u00a0GiB", "tr": "14,96\u00a0GiB"},
  {"id": 23, "kind": "MiB", "value": "24564", "de": "24.564\u00a0MiB", "en": "24,564\u00a0MiB", "tr": "24.564\u00a0MiB"},
  {"id": 24, "kind": "range GB", "value": "24..48", "de": "24\u201348\u00a0GB", "en": "24\u201348\u00a0GB", "tr": "24\u201348\u00a0GB"},
  {"id": 25, "kind": "range decimal", "value": "0.5..0.6 bytes", "de": "0,5\u20130,6\u00a0Byte", "en": "0.5\u20130.6\u00a0bytes", "tr": "0,5\u20130,6\u00a0bayt"},
  {"id": 26, "kind": "product", "value": "2 x 80 GB", "de": "2\u00a0\u00d7\u00a080\u00a0GB", "en": "2\u00a0\u00d7\u00a080\u00a0GB", "tr": "2\u00a0\u00d7\u00a080\u00a0GB"},
  {"id": 27, "kind": "approximation (prose)", "value": "~16 GB", "de": "ca.\u00a016\u00a0GB", "en": "about 16\u00a0GB", "tr": "yakla\u015f\u0131k 16\u00a0GB"},
  {"id": 28, "kind": "approximation (table)", "value": "~16 GB", "de": "\u2248\u00a016\u00a0GB", "en": "\u2248\u00a016\u00a0GB", "tr": "\u2248\u00a016\u00a0GB"},
  {"id": 29, "kind": "percent", "value": "0.5", "de": "50\u202f%", "en": "50%", "tr": "%50"},
  {"id": 30, "kind": "percent", "value": "0.0052", "de": "0,52\u202f%", "en": "0.52%", "tr": "%0,52"},
  {"id": 31, "kind": "percent", "value": "0.074", "de": "7,4\u202f%", "en": "7.4%", "tr": "%7,4"},
  {"id": 32, "kind": "percent", "value": "1.0", "de": "100\u202f%", "en": "100%", "tr": "%100"},
  {"id": 33, "kind": "percent range", "value": "0.1..1 %", "de": "0,1\u20131\u202f%", "en": "0.1\u20131%", "tr": "%0,1\u20131"},
  {"id": 34, "kind": "percent approx.", "value": "~50 %", "de": "ca.\u00a050\u202f%", "en": "about 50%", "tr": "yakla\u015f\u0131k %50"},
  {"id": 35, "kind": "parameters (prose)", "value": "8e9", "de": "8\u00a0Mrd. Parameter", "en": "8\u00a0billion parameters", "tr": "8\u00a0milyar parametre"},
  {"id": 36, "kind": "parameters (prose)", "value": "8.03e9", "de": "8,03\u00a0Mrd. Parameter", "en": "8.03\u00a0billion parameters", "tr": "8,03\u00a0milyar parametre"},
  {"id": 37, "kind": "parameters (prose)", "value": "70.55e9", "de": "70,6\u00a0Mrd. Parameter", "en": "70.6\u00a0billion parameters", "tr": "70,6\u00a0milyar parametre"},
  {"id": 38, "kind": "parameters (million)", "value": "41.9e6", "de": "41,9\u00a0Mio. Parameter", "en": "41.9\u00a0million parameters", "tr": "41,9\u00a0milyon parametre"},
  {"id": 39, "kind": "model class", "value": "8B", "de": "8B-Modell", "en": "8B model", "tr": "8B model"},
  {"id": 40, "kind": "card class", "value": "24 GB", "de": "24-GB-Karte", "en": "24\u00a0GB card", "tr": "24\u00a0GB kart"},
  {"id": 41, "kind": "bytes per parameter", "value": "16", "de": "16\u00a0Byte pro Parameter", "en": "16\u00a0bytes per parameter", "tr": "parametre ba\u015f\u0131na 16\u00a0bayt"},
  {"id": 42, "kind": "bits", "value": "4", "de": "4\u00a0Bit", "en": "4\u00a0bits", "tr": "4\u00a0bit"},
  {"id": 43, "kind": "tokens per second", "value": "1250", "de": "1250\u00a0Token/s", "en": "1250\u00a0tokens/s", "tr": "1250\u00a0token/sn"},
  {"id": 44, "kind": "reading time", "value": "9", "de": "9\u00a0Min. Lesezeit", "en": "9\u00a0min read", "tr": "9\u00a0dk. okuma"},
  {"id": 45, "kind": "plural", "value": "1 article(s)", "de": "1\u00a0Artikel", "en": "1\u00a0article", "tr": "1\u00a0yaz\u0131"},
  {"id": 46, "kind": "plural", "value": "9 article(s)", "de": "9\u00a0Artikel", "en": "9\u00a0articles", "tr": "9\u00a0yaz\u0131"},
  {"id": 47, "kind": "plural", "value": "1 GPU(s)", "de": "1\u00a0GPU", "en": "1\u00a0GPU", "tr": "1\u00a0GPU"},
  {"id": 48, "kind": "plural", "value": "2 GPU(s)", "de": "2\u00a0GPUs", "en": "2\u00a0GPUs", "tr": "2\u00a0GPU"},
  {"id": 49, "kind": "date (long)", "value": "2026-11-30", "de": "30.\u00a0November 2026", "en": "30\u00a0November 2026", "tr": "30\u00a0Kas\u0131m 2026"},
  {"id": 50, "kind": "date (numeric)", "value": "2026-11-30", "de": "30.11.2026", "en": "2026-11-30", "tr": "30.11.2026"},
  {"id": 51, "kind": "price per hour", "value": "2.5 EUR", "de": "2,50\u00a0\u20ac/h", "en": "\u20ac2.50/h", "tr": "2,50\u00a0\u20ac/saat"},
  {"id": 52, "kind": "ordinal", "value": "3", "de": "3.", "en": "3rd", "tr": "3."},
  {"id": 53, "kind": "file size", "value": "16.07 GB", "de": "16,07\u00a0GB", "en": "16.07\u00a0GB", "tr": "16,07\u00a0GB"}
]
""")

GB, MIB = 10**9, 2**20


def _numbers(value: str) -> list[Fraction]:
    return [Fraction(text) for text in re.findall(r"\d+(?:\.\d+)?", value)]


def _of_gb(value: str | Fraction) -> int:
    return int(Fraction(value) * GB)


def _gb(language, case):
    return language.gb(_of_gb(case["value"]))


WRITERS = {
    "integer": lambda language, case: language.number(int(case["value"])),
    "tokens (4 digits)": lambda language, case: language.number(int(case["value"])),
    "integer (5+ digits)": lambda language, case: language.number(int(case["value"])),
    "decimal": lambda language, case: language.number(exact(case["value"])),
    "rounding, 2 digits": lambda language, case: language.number(exact(case["value"]), 2),
    "rounding, 0 digits": lambda language, case: language.number(exact(case["value"]), 0),
    "GB": _gb,
    "GiB": lambda language, case: language.gib(int(Fraction(case["value"]) * 2**30)),
    "MiB": lambda language, case: language.text("unit.mib", number=language.number(int(case["value"]))),
    "range GB": lambda language, case: language.gb_range(*(_of_gb(end) for end in _numbers(case["value"]))),
    "range decimal": lambda language, case: language.plural(
        "unit.bytes", Fraction(3, 5), number=language.range(*(language.number(end) for end in _numbers(case["value"])))
    ),
    "product": lambda language, case: language.text(
        "product", count=int(_numbers(case["value"])[0]), amount=language.gb(_of_gb(_numbers(case["value"])[1]))
    ),
    "approximation (prose)": lambda language, case: language.text(
        "about", amount=language.gb(_of_gb(_numbers(case["value"])[0]))
    ),
    "approximation (table)": lambda language, case: language.text(
        "approx", amount=language.gb(_of_gb(_numbers(case["value"])[0]))
    ),
    "percent": lambda language, case: language.percent(exact(case["value"])),
    "percent range": lambda language, case: language.text(
        "percent_range", **dict(zip(("low", "high"), map(language.number, _numbers(case["value"])), strict=True))
    ),
    "percent approx.": lambda language, case: language.text(
        "about", amount=language.percent(_numbers(case["value"])[0] / 100)
    ),
    "parameters (prose)": lambda language, case: language.parameters(int(Fraction(case["value"]))),
    "parameters (million)": lambda language, case: language.parameters(int(Fraction(case["value"]))),
    "model class": lambda language, case: language.text("class.model", size=case["value"]),
    "card class": lambda language, case: language.text("class.card", size=case["value"].removesuffix(" GB")),
    "bytes per parameter": lambda language, case: language.bytes(int(case["value"]), "unit.bytes_per_parameter"),
    "bits": lambda language, case: language.bytes(int(case["value"]), "unit.bits"),
    "tokens per second": lambda language, case: language.text(
        "unit.tokens_per_second", number=language.number(int(case["value"]))
    ),
    "reading time": lambda language, case: language.text("unit.reading_time", number=case["value"]),
    "plural": lambda language, case: language.plural(
        "unit.articles" if "article" in case["value"] else "unit.gpus",
        int(case["value"].split()[0]),
        number=case["value"].split()[0],
    ),
    "date (long)": lambda language, case: language.date(date.fromisoformat(case["value"])),
    "date (numeric)": lambda language, case: language.date(date.fromisoformat(case["value"]), "numeric"),
    "price per hour": lambda language, case: language.price_per_hour(_numbers(case["value"])[0]),
    "ordinal": lambda language, case: language.ordinal(int(case["value"])),
    "file size": lambda language, case: language.text("unit.gb", number=language.number(_numbers(case["value"])[0], 2)),
}


def test_all_cases_of_the_study_are_here():
    assert [case["id"] for case in CASES] == list(range(1, 54))


@pytest.mark.parametrize("code", ["de", "en", "tr"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['id']}-{case['kind']}")
def test_case_of_the_study(case, code):
    assert WRITERS[case["kind"]](load(code), case) == case[code]


def test_rounding_is_half_up_of_the_exact_value():
    """Against the decimal module, which knows this rounding by name."""
    chance = random.Random(20261201)
    for _ in range(3000):
        numerator, denominator = chance.randrange(10**12), chance.choice([10**9, 2**30, 7, 64, 1000])
        decimals = chance.randrange(4)
        step = Decimal(1).scaleb(-decimals)
        if denominator == 7:
            continue  # not a finite decimal; covered by the bound below
        wanted = (Decimal(numerator) / Decimal(denominator)).quantize(step, ROUND_HALF_UP)
        assert units.rounded(numerator, denominator, decimals) == int(wanted.scaleb(decimals))
    for numerator in range(200):
        exactly = Fraction(numerator, 7) * 100
        assert abs(units.rounded(numerator, 7, 2) - exactly) <= Fraction(1, 2)


@pytest.mark.parametrize(
    ("byte_count", "text"),
    [
        (0, "0"),
        (4_999_999, "0"),
        (5_000_000, "0.01"),
        (994_999_999, "0.99"),
        (995_000_000, "1"),
        (996_000_000, "1"),
        (1_049_999_999, "1"),
        (1_050_000_000, "1.1"),
        (99_949_999_999, "99.9"),
        (99_950_000_000, "100"),
        (99_960_000_000, "100"),
        (128_500_000_000, "129"),
        (-1_800_000_000, "\u22121.8"),
        (-1, "0"),
    ],
)
def test_decimals_of_gb_follow_the_rounded_value(byte_count, text):
    assert units.gb_text(byte_count, ".", ",", "\u2212") == text


@pytest.mark.parametrize(
    ("column", "decimals"),
    [
        ([160_000_000, 990_000_000], 2),
        ([160_000_000, 1_000_000_000], 1),
        ([16_000_000_000, 112_000_000_000], 1),
        ([], 2),
    ],
)
def test_a_column_has_the_decimals_of_its_largest_value_but_one_at_least(column, decimals):
    assert units.gb_column_decimals(column) == decimals


def test_a_column_keeps_its_zeros_and_prose_does_not():
    assert units.gb_column_text(16 * GB, 1, ",", ".", "\u2212") == "16,0"
    assert units.gb_text(16 * GB, ",", ".", "\u2212") == "16"


@pytest.mark.parametrize(
    ("numerator", "denominator", "text"),
    [
        (1, 2, "50"),
        (52, 10000, "0.52"),
        (996, 100_000, "1"),
        (9_960, 100_000, "10"),
        (3, 2, "150"),
        (-1, 20, "\u22125"),
        (1, 100_000, "0"),
        (9_949, 100_000, "9.9"),
    ],
)
def test_percent_has_two_significant_digits(numerator, denominator, text):
    assert units.percent_text(numerator, denominator, ".", ",", "\u2212") == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (8_030_261_248, "8.03"),
        (70_553_706_496, "70.6"),
        (999_499_999, "999"),
        (999_500_000, "1"),
        (524_288, "524,288"),
        (1_000_000, "1"),
        (405_000_000_000, "405"),
        (9_999, "9999"),
        (10_000, "10,000"),
    ],
)
def test_counts_have_three_significant_digits(count, text):
    assert units.count_text(count, ".", ",") == text


@pytest.mark.parametrize(
    ("value", "text"),
    [("0.967", "0.97"), ("0.71", "0.71"), ("0.996", "1"), ("1.24", "1.2"), ("3.15", "3.2"), ("13.4", "13"), ("4", "4")],
)
def test_ratios_have_two_significant_digits(value, text):
    assert load("en").ratio(exact(value)) == text


def test_whole_numbers_are_grouped_from_five_digits():
    for number in [*range(0, 12_000, 37), 10_000, 100_005, 1_000_000, 20_080_003]:
        wanted = str(number) if number < 10_000 else f"{number:,}"
        assert units.grouped(number, ",") == wanted


def test_byte_counts_of_a_whole_data_centre_stay_exact():
    assert units.gb_text(2**53 - 1, ".", ",", "-") == "9,007,199"


def test_seconds_become_hours_and_minutes():
    assert units.hours_and_minutes(7500) == [2, 5]
    assert units.hours_and_minutes(3599.5) == [1, 0]
    assert load("de").duration(7500) == "2\u00a0h 5\u00a0min"
    assert load("tr").duration(90) == "2\u00a0dk."
    assert load("en").duration(12.4) == "12\u00a0s"
