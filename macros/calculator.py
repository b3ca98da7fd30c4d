"""The calculator's form as HTML: every field with its label in one language, empty places for the results.

`docs/assets/javascripts/calculator.js` reads the fields, asks the translated estimator and fills the places; what it says
comes from shown.py and from `words_for`. Nothing here calculates but the result that a small form shows before anybody
touches it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup

from macros import address, shown
from macros.configs.write import KINDS
from macros.dataset import Dataset
from macros.estimator.recipe import METHODS, TABLES
from macros.figures import element, joined
from macros.language import Language, messages

ROOT = Path(__file__).parent.parent

# What the page starts with; an address that names a model or a config.json starts without it.
START = {"model": "llama-3.1-8b", "method": "qlora", "gpu": "rtx-4090", "batch": "1", "length": "2048"}

MAIN = ("preset", "model", "method", "gpu", "num_gpus", "parallelism", "micro_batch_size", "sequence_length")
GROUPS: Mapping[str, tuple[str, ...]] = {
    "training": (
        "gradient_checkpointing",
        "checkpoint_offload",
        "use_reentrant",
        "gradient_accumulation_steps",
        "optim",
        "foreach",
        "precision",
        "base_dtype",
        "master_gradients",
    ),
    "objective": ("objective", "reference", "prompt_length", "num_generations", "generation", "vllm_memory_share"),
    "loss": ("loss", "attention", "kernels", "trained_token_share", "padding", "keep_outputs", "transformers"),
    "adapter": ("lora_r", "target_modules", "lora_dropout", "adapter_dtype", "use_dora", "modules_to_save"),
    "quantization": (
        "quantization",
        "double_quant",
        "prepare_kbit",
        "kbit_tables",
        "quantized_inputs_kept",
        "quant_storage",
    ),
    "cards": ("fsdp_version", "offload_optimizer", "offload_params"),
    "questions": ("dataset_tokens", "epochs", "price_per_hour", "checkpoints_kept"),
}
# Fields with a choice that are no choice of one name.
_TABLE_CHOICES = ("none", *TABLES, ",".join(TABLES))
_VERSIONS = ("1", "2")

# Messages that the script needs: families by their prefix, columns by the names of settings and of what it shows, and of
# the page's own words those that the two sources name, in full or up to what a variable adds.
_FAMILIES = (
    "caption.evidence.",
    "count.",
    "event.",
    "mark.",
    "measure.",
    "moment.",
    "occasion.",
    "part.",
    "price.",
    "purpose.",
    "reach.",
    "span.",
    "verdict.",
    "warning.",
    *(f"{key}." for key in (*address.CHOICES, "target_modules")),
)
_SINGLE = (
    "range",
    "table.label",
    "unit.gb",
    "unit.gib",
    "unit.tokens_per_second",
    "value.yes",
    "value.no",
    "value.none",
    "chart.limit",
    "caption.rounded",
)
_COLUMNS = (
    "all_gpus",
    "cost",
    "disk_total",
    "duration",
    "gpu",
    "headroom",
    "host_peak",
    "measure",
    "memory",
    "method",
    "model",
    "parameters",
    "peak",
    "preset",
    "price",
    "reserved",
    "saving",
    "sum",
    "tokens_per_second",
    "trainable_parameters",
    "verdict",
)


@cache
def _spoken() -> tuple[set[str], tuple[str, ...]]:
    """The page's own words that the script says: whole keys, and beginnings of keys."""
    sources = "".join((ROOT / path).read_text(encoding="utf-8") for path in ("macros/shown.py", "docs/assets/javascripts/calculator.js"))
    named = {f"calculator.{name}" for pair in re.findall(r'say\("([a-z_.]+)"|"calculator\.([a-z_.]+)["{]', sources) for name in pair if name}
    return named, tuple(name for name in named if name.endswith("."))


def words_for(code: str) -> dict[str, str]:
    """The messages of one language that the script says."""
    whole, beginnings = _spoken()
    settings = {key for keys in GROUPS.values() for key in keys} | set(MAIN)
    columns = {f"column.{name}" for name in (*_COLUMNS, *settings)}
    return {
        key: said
        for key, said in messages(code).items()
        if key.startswith((*_FAMILIES, *beginnings)) or key in _SINGLE or key in columns or key in whole
    }


def query(keys: Mapping[str, Any]) -> str:
    """The part of the calculator's address that holds a recipe."""
    return urlencode([(name, text) for name, text in address.pairs_of(dict(keys))], safe=",")


def link(language: Language, keys: Mapping[str, Any], name: str) -> Markup:
    """A link to the calculator with a recipe; overrides/hooks/calculator.py knows the way to the page."""
    return element(
        "a",
        "",
        href=f"calculator:?{query(keys)}",
        class_="vg-open",
        title=language.text("calculator.open"),
        aria_label=language.text("calculator.open.label", name=name),
    )


def whole_form(language: Language, dataset: Dataset) -> Markup:
    """The form with everything, hidden until the script runs, and the places of its results."""
    write = _Writer(language, dataset, "vg-calc")
    main = element("div", joined(write.field(key) for key in MAIN) + write.own_config(), class_="vg-fields")
    groups = joined(
        element(
            "fieldset",
            element("legend", language.text(f"calculator.group.{name}"))
            + element("div", joined(write.field(key) for key in keys), class_="vg-fields"),
        )
        for name, keys in GROUPS.items()
        if name != "questions"
    )
    folded = element("summary", language.text("calculator.options")) + groups
    asked = element("summary", language.text("calculator.group.questions")) + element(
        "div", joined(write.field(key) for key in GROUPS["questions"]), class_="vg-fields"
    )
    form = element(
        "form",
        main
        + element("details", folded, class_="vg-calc__more", data_part="options")
        + element("details", asked, class_="vg-calc__more", data_part="questions")
        + write.config_box()
        + write.import_box()
        + write.export_box()
        + write.tools(),
        class_="vg-calc__form",
        aria_label=language.text("calculator.form"),
        novalidate="",
        autocomplete="off",
    )
    inside = element("div", form + _results(language), class_="vg-calc__top") + _beyond(language)
    waiting = element("noscript", element("p", language.text("calculator.no_script"), class_="vg-calc__none"))
    return waiting + element(
        "div",
        inside,
        class_="vg-calculator",
        data_kind="whole",
        data_start=query_text(START),
        data_accuracy="calculator:../accuracy/",
        data_articles="calculator:../",
        data_search_exclude="",
        hidden="",
    )


def query_text(pairs: Mapping[str, str]) -> str:
    """Names and texts as an address carries them."""
    return urlencode(pairs, safe=",")


def small_form(language: Language, dataset: Dataset, keys: Mapping[str, Any]) -> Markup:
    """A form of four fields for one recipe, with its result; it leads to the page with the whole form.

    Without the script there is the result and the link.
    """
    data = _data(dataset)
    settled = shown.settled_keys(data, dict(keys))
    if settled["sentence"]:
        raise ValueError(settled["sentence"])
    if settled["dropped"]:
        raise ValueError(f"{settled['dropped'][0]} contradicts the other keys")
    said = shown.result_texts(data, messages(language.code), dict(keys), "gb")
    name = "vg-" + address.text_of(query(keys)).replace("=", "-").replace("&", "-").replace("%", "")
    write = _Writer(language, dataset, name, keys, said["settings"])
    fields = joined(write.field(key) for key in ("model", "method", "gpu", "sequence_length"))
    button = element("button", language.text("calculator.open"), type="submit", class_="vg-button")
    form = element("form", element("div", fields, class_="vg-fields") + button, class_="vg-calc__form", method="get", action="calculator:", hidden="")
    told = element("span", f"{said['answer']} ", data_part="answer") + element(
        "strong", f"{said['peak']} ({said['other']})", class_="vg-calc__peak", data_part="peak"
    )
    result = element(
        "output", told, class_=f"vg-calc__answer vg-calc__answer--{said['verdict']}", aria_live="polite", data_part="result"
    )
    title = element("p", language.text("calculator.small"), class_="vg-calc__title")
    way = element("a", language.text("calculator.open"), href=f"calculator:?{query(keys)}", data_part="way")
    return element(
        "div",
        title + form + result + element("p", way, class_="vg-calc__way"),
        class_="vg-calculator vg-calculator--small",
        data_kind="small",
        data_start=query(keys),
        data_search_exclude="",
    )


def _data(dataset: Dataset) -> dict[str, Any]:
    from macros import portable  # it reads the whole translator, which only this needs

    return portable.data(dataset)


class _Writer:
    """Writes fields; ids begin with `prefix`, values are those of `keys`, `settings` are what holds where there is none."""

    def __init__(
        self,
        language: Language,
        dataset: Dataset,
        prefix: str,
        keys: Mapping[str, Any] | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._language, self._dataset, self._prefix = language, dataset, prefix
        self._keys = keys or {}
        self._settings = settings or {}

    def field(self, key: str) -> Markup:
        """One setting: label, control, and a place for what is wrong with it."""
        name = address.short_name(key)
        ident = f"{self._prefix}-{name}"
        own = f"calculator.{key}"
        label = self._language.text(own if self._language.has(own) else f"column.{key}")
        attributes = {"id": ident, "name": name, "aria_describedby": f"{ident}-error"}
        extra = Markup()
        if key == "model":
            hint = self._language.text("calculator.model_hint")
            extra = element("p", hint, class_="vg-field__hint", id=f"{ident}-hint", data_part="model-hint", data_hint=hint)
            attributes["aria_describedby"] = f"{ident}-hint {ident}-error"
            control = self._models(ident, attributes)
        elif (choices := self._choices(key)) is not None:
            control = element("select", joined(choices), **attributes)
        else:
            mode = "text" if key == "target_modules" else "decimal" if key in ("epochs", "price_per_hour", *address.SHARES) else "numeric"
            value = self._keys.get(key)
            typed = None if value is None else address.text_of(value)
            control = element(
                "input", type="text", inputmode=mode, value=typed, placeholder=self._settings.get(key), **attributes
            )
            if key == "dataset_tokens":
                extra = element("p", "", class_="vg-field__hint", data_part="tokens")
        error = element("p", "", class_="vg-field__error", id=f"{ident}-error", hidden="")
        return element("div", element("label", label, for_=ident) + _void(control) + extra + error, class_="vg-field", data_name=name)

    def _models(self, ident: str, attributes: Mapping[str, Any]) -> Markup:
        listed = joined(
            element("option", "", value=model.name, data_key=model.key) for model in self._dataset.models
        )
        key = self._keys.get("model")
        value = self._dataset.models[key].name if key else None
        return element("input", type="text", list=f"{ident}-list", value=value, spellcheck="false", **attributes) + element(
            "datalist", listed, id=f"{ident}-list"
        )

    def _choices(self, key: str) -> Iterable[Markup] | None:
        """The options of a select; None for a field that is typed into."""
        language = self._language
        if key == "gpu":
            return self._cards()
        if key == "preset":
            return [self._option(preset.key, preset.name, key) for preset in self._dataset.presets]
        if key == "method":
            return [self._option(method, language.text(f"method.{method}"), key) for method in METHODS]
        first = element("option", language.text("calculator.default.plain"), value="")
        if key in address.FLAGS:
            return [first, *(self._option(value, language.text(f"value.{word}"), key) for value, word in (("true", "yes"), ("false", "no")))]
        if key == "modules_to_save":
            words = shown_lists(language)
            return [first, *(self._option(value, words[value], key) for value in _TABLE_CHOICES)]
        if key == "fsdp_version":
            return [first, *(self._option(value, value, key) for value in _VERSIONS)]
        if key in address.CHOICES:
            values = address.CHOICES[key]
            return [first, *(self._option(value, _named(language, key, value), key) for value in values)]
        return None

    def _cards(self) -> list[Markup]:
        """All cards, by kind, the smallest first."""
        none = element("option", self._language.text("calculator.no_card"), value="")
        kinds: dict[str, list[Any]] = {}
        for gpu in self._dataset.gpus:
            kinds.setdefault(gpu.segment, []).append(gpu)
        return [none] + [
            element(
                "optgroup",
                joined(self._option(gpu.key, gpu.name, "gpu") for gpu in gpus),
                label=self._language.text(f"segment.{kind}"),
            )
            for kind, gpus in kinds.items()
        ]

    def _option(self, value: str, words: str, key: str) -> Markup:
        return element("option", words, value=value, selected="" if self._keys.get(key) == value else None)

    def own_config(self) -> Markup:
        """The field that carries a config.json, and the line that says that it is used instead of a model."""
        remove = element("button", self._language.text("calculator.config.remove"), type="button", class_="vg-link", data_do="remove-config")
        said = element("span", "", data_part="config-name") + Markup(" ") + remove
        return _void(element("input", type="hidden", name="config")) + element("p", said, class_="vg-calc__own", data_part="own", hidden="")

    def config_box(self) -> Markup:
        """Where a config.json is pasted, dropped or chosen."""
        language, ident = self._language, f"{self._prefix}-config"
        text = element("textarea", "", id=ident, rows="6", spellcheck="false", aria_describedby=f"{ident}-hint {ident}-error", data_part="config-text")
        file = _void(element("input", type="file", accept=".json,application/json", id=f"{ident}-file", data_part="config-file"))
        use = element("button", language.text("calculator.config.use"), type="button", class_="vg-button", data_do="config")
        inside = (
            element("p", language.text("calculator.config.hint"), class_="vg-field__hint", id=f"{ident}-hint")
            + element("label", language.text("calculator.config.text"), for_=ident)
            + text
            + element("p", "", class_="vg-field__error", id=f"{ident}-error", data_part="config-error", hidden="", role="alert")
            + element("div", use + element("label", language.text("calculator.config.file"), for_=f"{ident}-file", class_="vg-file") + file, class_="vg-calc__row")
        )
        return element("details", element("summary", language.text("calculator.config")) + inside, class_="vg-calc__more", data_part="config")

    def import_box(self) -> Markup:
        """Where the configuration of a training framework is pasted, and what became of each of its keys."""
        language, ident = self._language, f"{self._prefix}-import"
        text = element("textarea", "", id=ident, rows="8", spellcheck="false", aria_describedby=f"{ident}-hint", data_part="import-text")
        use = element("button", language.text("calculator.config.use"), type="button", class_="vg-button", data_do="import")
        inside = (
            element("p", language.text("calculator.import.hint"), class_="vg-field__hint", id=f"{ident}-hint")
            + element("label", language.text("calculator.import.text"), for_=ident)
            + text
            + element("div", use, class_="vg-calc__row")
            + element("div", "", data_part="import-report", aria_live="polite")
        )
        summary = element("summary", language.text("calculator.import"))
        return element("details", summary + inside, class_="vg-calc__more", data_part="import")

    def export_box(self) -> Markup:
        """The recipe as text for other programs, written when somebody opens it."""
        language, ident = self._language, f"{self._prefix}-export"
        options = (element("option", language.text(f"calculator.export.{kind}"), value=kind) for kind in KINDS)
        text = element("textarea", "", id=ident, rows="12", readonly="", spellcheck="false", lang="en", data_part="export-text")
        copy = element("button", language.text("calculator.export.copy"), type="button", class_="vg-button", data_do="copy")
        inside = (
            element("label", language.text("calculator.export.kind"), for_=f"{ident}-kind")
            + element("select", joined(options), id=f"{ident}-kind", data_part="export-kind")
            + element("label", language.text("calculator.export.text"), for_=ident)
            + text
            + element("p", language.text("calculator.export.needs_model"), class_="vg-field__error", data_part="export-error", hidden="", role="alert")
            + element("div", copy, class_="vg-calc__row")
        )
        summary = element("summary", language.text("calculator.export"))
        return element("details", summary + inside, class_="vg-calc__more", data_part="export")

    def tools(self) -> Markup:
        """The unit, the link to share, and the way back to the beginning."""
        language, ident = self._language, f"{self._prefix}-unit"
        radios = joined(
            element(
                "label",
                _void(element("input", type="radio", name="unit", value=unit, checked="" if unit == "gb" else None)) + Markup(" ") + name,
            )
            for unit, name in (("gb", "GB"), ("gib", "GiB"))
        )
        units = element("fieldset", element("legend", language.text("calculator.unit"), id=ident) + radios, class_="vg-calc__unit")
        share = element("button", language.text("calculator.share"), type="button", class_="vg-button", data_do="share")
        reset = element("button", language.text("calculator.reset"), type="button", class_="vg-button", data_do="reset")
        shared = _void(element("input", type="text", readonly="", aria_label=language.text("calculator.share.address"), data_part="address", hidden=""))
        return element("div", units + share + reset + shared, class_="vg-calc__row")


def _named(language: Language, key: str, value: str) -> str:
    message = f"{key}.{value}"
    return language.text(message) if language.has(message) else value


def shown_lists(language: Language) -> dict[str, str]:
    """The choices of tables that are trained in full, as a reader sees them."""
    return {value: language.text("calculator.nothing") if value == "none" else value.replace(",", ", ") for value in _TABLE_CHOICES}


def _void(control: Markup) -> Markup:
    """Inputs have no end tag."""
    return Markup(str(control).replace("</input>", ""))


def _results(language: Language) -> Markup:
    """The places of what every keystroke changes."""
    answer = element("span", "", data_part="answer") + element("strong", "", class_="vg-calc__peak", data_part="peak")
    facts = element("summary", language.text("calculator.details")) + element("dl", "", data_part="facts") + element("p", "", class_="vg-caption", data_part="evidence")
    beside = element("summary", language.text("calculator.beside")) + element("div", "", data_part="beside")
    return element(
        "section",
        element("h3", language.text("calculator.result"), id="calc-result", class_="vg-calc__heading")
        + element("output", answer, class_="vg-calc__answer", aria_live="polite", data_part="result")
        + element("ul", "", class_="vg-calc__problems", data_part="problems", aria_label=language.text("calculator.problems"), hidden="")
        + element("p", "", class_="vg-calc__against", data_part="card", hidden="")
        + _section(language, "advice", 4)
        + _section(language, "parts", 4)
        + _section(language, "moments", 4)
        + element("ul", "", class_="vg-calc__warnings", data_part="warnings", hidden="")
        + element("details", facts, class_="vg-calc__more", open="")
        + element("details", beside, class_="vg-calc__more"),
        class_="vg-calc__result",
        aria_label=language.text("calculator.result"),
    )


def _section(language: Language, name: str, level: int = 3) -> Markup:
    heading = element(f"h{level}", language.text(f"calculator.{name}"), id=f"calc-{name}", class_="vg-calc__heading")
    return element("section", heading + element("div", "", data_part=name), class_=f"vg-calc__section vg-calc__{name}")


def _beyond(language: Language) -> Markup:
    """The places of what takes longer, filled one after the other."""
    return element("div", joined(_section(language, name) for name in ("limits", "cards", "compare", "capacity")), class_="vg-calc__beyond")
