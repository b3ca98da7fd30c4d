"""The catalogues of the three languages say the same, each in its own words."""

from __future__ import annotations

import re
import unicodedata
from datetime import date
from fractions import Fraction
from typing import get_args

import pytest

from macros import language, records
from macros.estimator import MOMENTS, PARTS, Recipe
from macros.estimator.recipe import ATTENTIONS, LOSSES, METHODS, PRECISIONS
from macros.readings import COUNTERS, OUTCOMES, ErrorRow, OutcomeRow, PeerRow, RangeRow, Reading
from macros.run import _FIGURES, MomentRow, PartRow

CATALOGUES = {code: language.messages(code) for code in language.CODES}
KEYS = list(CATALOGUES["de"])

# Words that are the same in English and in the other language: names, symbols, units, and loan words of the glossary.
SAME_AS_ENGLISH = {
    "de": {
        "column.gpu",
        "column.gpus",
        "column.num_gpus",
        "condition.num_gpus",
        "column.preset",
        "column.optim",
        "column.attention",
        "column.loss",
        "column.name",
        "column.hub",
        "column.padding",
        "column.software",
        "column.framework",
        "column.version",
        "part.logits",
        "formula.states",
        "objective.sft",
        "objective.dpo",
        "objective.grpo",
        "category.hardware",
        "calculator.group.training",
        "calculator.config.own",
        "calculator.export.text",
        "calculator.export.json",
        "calculator.export.axolotl",
        "unit.gpus.one",
        "unit.gpus.other",
    },
    "tr": {
        "column.gpu",
        "column.preset",
        "column.optim",
        "column.attention",
        "column.hub",
        "column.model",
        "column.foreach",
        "column.lora_dropout",
        "column.gradient_checkpointing",
        "condition.attention",
        "condition.lora_dropout",
        "class.model",
        "formula.states",
        "objective.sft",
        "objective.dpo",
        "objective.grpo",
        "calculator.config.own",
        "calculator.export.json",
        "calculator.export.axolotl",
        "unit.gpus.one",
        "unit.bits.one",
        "unit.tokens.one",
    },
}
# Only placeholders, signs and names that no language changes.
_UNTRANSLATABLE = re.compile(
    r"|\s|[.,:;()%€/×–≈−]|\{\w+\}|\b(GB|GiB|MiB|GB/s|TFLOPS|LoRA|QLoRA|DoRA|Transformers|NVIDIA|AMD|Apple|BF16|ECC|MIG|FlashAttention"
    r"|PyTorch|SDPA|DDP|FSDP \d|FSDP|ZeRO-\d|LLM\.int8|s|min|h|et|al)\b"
)


def test_the_same_keys_in_the_same_order():
    for code, catalogue in CATALOGUES.items():
        assert list(catalogue) == KEYS, code


@pytest.mark.parametrize("key", KEYS)
def test_the_same_placeholders(key):
    slots = {code: language.placeholders(catalogue[key]) for code, catalogue in CATALOGUES.items()}
    assert len(set(map(frozenset, slots.values()))) == 1, slots


@pytest.mark.parametrize("code", ["de", "tr"])
def test_nothing_is_left_in_english(code):
    english, own = CATALOGUES["en"], CATALOGUES[code]
    same = {key for key in KEYS if own[key] == english[key] and _UNTRANSLATABLE.sub("", own[key])}
    assert same == SAME_AS_ENGLISH[code]


@pytest.mark.parametrize("code", language.CODES)
def test_messages_are_whole_phrases_without_markup(code):
    for key, message in CATALOGUES[code].items():
        assert message == message.strip(), key
        assert "<" not in message and ">" not in message and "&" not in message, key
        assert unicodedata.is_normalized("NFC", message), key
        assert not re.search(r"\{\w+\} ?(GB|GiB|MiB)\b", message.replace("\u00a0", "?")), (
            f"{key}: no plain blank before a unit"
        )


def test_no_turkish_suffix_on_a_slot_or_a_unit():
    """A suffix follows how a number is spoken, so no template can know it."""
    for key, message in CATALOGUES["tr"].items():
        assert not re.search(r"(\}|GB|GiB|VRAM|%)['’]", message), key
        assert "'" not in message, f"{key}: the Turkish apostrophe is ’"


def test_no_english_article_before_a_slot():
    for key, message in CATALOGUES["en"].items():
        assert not re.search(r"\b[Aa]n? \{", message), key


def _labelled() -> set[str]:
    """Every key that the code derives from the name of something."""
    keys = {f"part.{part}" for part in PARTS} | {f"formula.{part}" for part in PARTS}
    keys |= {f"moment.{moment}" for moment in MOMENTS} | {f"method.{method}" for method in METHODS}
    keys |= {f"precision.{name}" for name in PRECISIONS} | {f"loss.{name}" for name in LOSSES}
    keys |= {f"attention.{name}" for name in ATTENTIONS}
    keys |= {f"verdict.{name}" for name in ("comfortable", "tight", "does_not_fit")}
    keys |= {
        f"{kind}.{name}" for name in ("oracle", "measured", "arithmetic") for kind in ("evidence", "caption.evidence")
    }
    for record in records.KINDS.values():
        keys |= {f"column.{name}" for name in record.columns()}
    keys |= {f"column.{name}" for name in (*_FIGURES, *PartRow.COLUMNS, *MomentRow.COLUMNS, "model", "gpu", "preset")}
    keys |= {f"column.{name}" for name in Recipe.__dataclass_fields__}
    for rows in (Reading, ErrorRow, RangeRow, OutcomeRow, PeerRow):
        keys |= {f"column.{name}" for name in rows.COLUMNS}
    keys |= {f"counter.{name}" for name in COUNTERS} | {f"outcome.{name}" for name in OUTCOMES}
    keys |= {f"dots.title.{name}" for name in COUNTERS} | {f"how.{name}" for name in records.choices(records.Peer, "how")}
    keys |= {f"reason.{word}" for word in get_args(records.Reason)} | {f"model_code.{word}" for word in ("own", "transformers")}
    for field in ("vendor", "segment", "ecc", "memory_mib_source"):
        keys |= {f"{field}.{word}" for word in records.choices(records.Gpu, field)}
    keys |= {f"kind.{word}" for word in records.choices(records.Source, "kind")}
    return keys


@pytest.mark.parametrize("key", sorted(_labelled()))
def test_everything_that_has_a_name_has_a_message(key):
    missing = [f"macros/messages/{code}.yml" for code in language.CODES if key not in CATALOGUES[code]]
    assert not missing, f"add {key!r} to {', '.join(missing)}"


def test_every_recipe_key_has_a_condition():
    for name, field in Recipe.__dataclass_fields__.items():
        if name == "method":
            continue
        wanted = (
            [f"condition.{name}.true", f"condition.{name}.false"] if field.type == "bool" else [f"condition.{name}"]
        )
        assert all(key in KEYS for key in wanted), name


def test_a_missing_message_names_its_file_and_the_nearest_key():
    with pytest.raises(
        ValueError, match=r"macros/messages/tr\.yml has no 'part\.wieghts'; did you mean 'part\.weights'\?"
    ):
        language.load("tr").text("part.wieghts")


def test_an_unknown_language_is_named():
    with pytest.raises(ValueError, match="no language 'fr'; the site has de, en, tr"):
        language.load("fr")


@pytest.mark.parametrize(
    ("typed", "value"),
    [(3, 3), (0.1, Fraction(1, 10)), ("0.52", Fraction(13, 25)), (2.0, 2), (Fraction(4, 2), 2)],
)
def test_numbers_are_what_was_typed(typed, value):
    assert language.exact(typed) == value


@pytest.mark.parametrize("typed", [True, None, "many", [1]])
def test_what_is_no_number_is_refused(typed):
    with pytest.raises(ValueError, match="expected a number"):
        language.exact(typed)


def test_machine_values_are_the_same_in_every_language():
    assert [language.machine(value) for value in (16_060_522_496, Fraction(1, 8), Fraction(1, 3))] == [
        "16060522496",
        "0.125",
        "0.3333333333333333",
    ]


@pytest.mark.parametrize(("code", "month"), [("de", "Juli 2024"), ("en", "July 2024"), ("tr", "Temmuz 2024")])
def test_moments_of_data_files(code, month):
    speaks = language.load(code)
    assert speaks.moment("2024-07") == month
    assert speaks.moment("2021") == "2021"
    assert speaks.moment("2026-11-30") == speaks.date(date(2026, 11, 30))


def test_plural_of_a_decimal_is_the_general_form():
    assert language.load("en").bytes(1) == "1\u00a0byte"
    assert language.load("en").bytes(Fraction(3, 2)) == "1.5\u00a0bytes"
    assert language.load("en").ordinal(1) == "1st"
    assert language.load("en").ordinal(22) == "22nd"
    assert language.load("en").ordinal(11) == "11th"


def test_a_range_of_equal_texts_is_one_amount():
    assert language.load("de").gb_range(17_210_000_000, 17_220_000_000) == "17,2\u00a0GB"
