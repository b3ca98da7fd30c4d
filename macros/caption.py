"""What the figures of a table or chart hold for: conditions that are not visible in it, and what stands behind them.

The first caption of a page says everything. Later ones say what is new, and keep the whole to be opened.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from markupsafe import Markup

from macros.amounts import Amount
from macros.estimator import questions_from_keys, units
from macros.estimator.events import EVALUATION_BATCH
from macros.estimator.fit import COMFORTABLE_PERCENT
from macros.figures import element
from macros.language import Language, exact
from macros.records import Gpu
from macros.run import Run

# The order of a caption; recipe keys that are not named here stay out of it.
_ORDER = (
    "model",
    "method",
    "objective",
    "reference",
    "gpu",
    "micro_batch_size",
    "num_generations",
    "sequence_length",
    "prompt_length",
    "generation",
    "vllm_memory_share",
    "gradient_accumulation_steps",
    "gradient_checkpointing",
    "checkpoint_offload",
    "optim",
    "foreach",
    "loss",
    "trained_token_share",
    "precision",
    "base_dtype",
    "master_gradients",
    "attention",
    "kernels",
    "lora_r",
    "target_modules",
    "use_dora",
    "modules_to_save",
    "lora_dropout",
    "adapter_dtype",
    "quantization",
    "double_quant",
    "prepare_kbit",
    "keep_outputs",
    "padding",
    "transformers",
    "use_reentrant",
    "kbit_tables",
    "quantized_inputs_kept",
    "quant_storage",
    "preset",
    "offload_optimizer",
    "offload_params",
    "fsdp_version",
    "parallelism",
)

# Conditions that are only worth a word where a run differs from what the house recipe has.
_QUIET: Mapping[str, Any] = {
    "objective": "sft",
    "gradient_accumulation_steps": 1,
    "checkpoint_offload": False,
    "kernels": "none",
    "use_dora": False,
    "modules_to_save": [],
    "quantization": "nf4",
    "lora_dropout": 0,
    "adapter_dtype": "float32",
    "double_quant": True,
    "prepare_kbit": True,
    "keep_outputs": False,
    "padding": False,
    "master_gradients": "param",
    "trained_token_share": 1,
    "transformers": "5",
    "use_reentrant": False,
    "kbit_tables": "float32",
    "quantized_inputs_kept": False,
    "quant_storage": "uint8",
    "offload_optimizer": False,
    "offload_params": False,
    "fsdp_version": 2,
    "parallelism": "none",
    "preset": "transformers-peft",
}
# Conditions of a run itself; every other one belongs to a method, which may have its own value.
_OF_RUN = ("model", "method", "gpu", "preset")
# Warnings about parts of a published model that are left out.
_OMITS = "omits_"
# Warnings about what a run need not do: the table of its events has them, and every result of the command line.
_AT_WILL = ("evaluation_exceeds_step", "save_exceeds_step", "resume_exceeds_step", "merge_exceeds_step")
# More places than these are no explanation of where a value holds.
_MOST_PLACES = 6
# Columns that depend on what a card offers.
_OF_CARD = ("memory", "memory_mib", "verdict", "headroom")
_FP32_WEIGHTS = ("fp32-autocast", "fp32")


def value_text(language: Language, key: str, value: Any) -> str:
    """A recipe value in the page's language; names of options stay as they are."""
    if value is None:
        return language.text("value.none")
    if isinstance(value, bool):
        return language.text("value.yes" if value else "value.no")
    if key in ("trained_token_share", "vllm_memory_share"):
        return language.percent(exact(value))
    if isinstance(value, (int, float)):
        return language.number(exact(value))
    if isinstance(value, (list, tuple)):
        return language.listing(str(item) for item in value)
    if hasattr(value, "name"):
        return value.name
    key = f"{key}.{value}"
    return language.text(key) if language.has(key) else str(value)


def settings(language: Language, recipe: Mapping[str, Any]) -> str:
    """Recipe keys in a line, as a caption words them: QLoRA · without double quantization."""
    return " · ".join(
        _named(language, key, value)
        if isinstance(value, bool)
        else _worded(language, key, value_text(language, key, value))
        for key, value in recipe.items()
    )


def measure(language: Language, name: str, changes: Mapping[str, Any]) -> str:
    """A measure of what to change first, with its values: micro-batch 1, accumulation 4; empty for the run as it is."""
    values = {key: value_text(language, key, value) for key, value in changes.items()}
    return language.text(f"measure.{name}" if name else "measure.none", **values)


def axis_text(language: Language, run: Run, key: str) -> str:
    """The value of one recipe key of a run, as a heading or in a list."""
    if key == "model":
        return run.name
    return value_text(language, key, run.value(key))


def heading_text(language: Language, run: Run, key: str) -> str:
    """The value of a recipe key as a column's heading; numbers and yes or no carry the name of the key."""
    value = run.recipe.get(key)
    if isinstance(value, (bool, int, float)):
        return _named(language, key, value)
    return axis_text(language, run, key)


def conditions(language: Language, runs: Sequence[Run], shown: Collection[str]) -> list[str]:
    """What all figures hold for, without the keys that are `shown` as rows or columns.

    A key whose value differs between the runs, though it is not shown, names where each value holds.
    """
    phrases = _phrases(language, runs, shown).values()
    return [*phrases, *([] if "num_gpus" in shown else [_gpus(language, runs)])]


def _gpus(language: Language, runs: Sequence[Run]) -> str:
    """The number of GPUs that the figures of one GPU belong to; several numbers where the runs differ."""
    numbers = sorted({run.recipe["num_gpus"] for run in runs})
    written = " / ".join(language.number(number) for number in numbers)
    return language.plural("unit.gpus", numbers[-1], number=written)


def _phrases(language: Language, runs: Sequence[Run], shown: Collection[str]) -> dict[str, str]:
    """For each recipe key that is worth a word, its phrase."""
    said = {key: _condition(language, runs, key, shown) for key in _ORDER if key not in shown}
    return {key: phrase for key, phrase in said.items() if phrase}


def _condition(language: Language, runs: Sequence[Run], key: str, shown: Collection[str]) -> str | None:
    # None stands for: goes without saying. Runs to whose method the key does not apply are left out.
    said = {run: _said(language, run, key) for run in runs if _applies(run, key)}
    values = list(dict.fromkeys(value for value in said.values() if value))
    if not values:
        return None
    if len(values) > 1 or not all(said.values()):
        where = _axis_that_explains(language, runs, said, shown)
        if where is None:
            every = dict.fromkeys(_spelled(language, run, key) for run in said)
            return _worded(language, key, " / ".join(every))
        values = [
            language.text("caption.varied", value=value, where=language.listing(where[value])) for value in values
        ]
    return _worded(language, key, language.listing(values))


def _axis_that_explains(
    language: Language, runs: Sequence[Run], said: Mapping[Run, str | None], shown: Collection[str]
) -> dict[str, list[str]] | None:
    """For each phrase the values of one shown key where it holds, if one key decides it alone, or else two together."""
    keys = [key for key in shown if all(key in run.recipe for run in runs)]
    for axes in (*((key,) for key in keys), *itertools.combinations(keys, 2)):
        where: dict[str, list[str]] = {}
        owner: dict[str, str | None] = {}
        for run, phrase in said.items():
            value = "/".join(axis_text(language, run, key) for key in axes)
            if owner.setdefault(value, phrase) != phrase:
                break
            if phrase and value not in where.setdefault(phrase, []):
                where[phrase].append(value)
        else:
            if len(axes) == 1 or sum(map(len, where.values())) <= _MOST_PLACES:
                return where
    return None


def _applies(run: Run, key: str) -> bool:
    return key == "model" or run.recipe.get(key) is not None


def _said(language: Language, run: Run, key: str) -> str | None:
    """What a caption says of one key of one run, before it is worded; yes and no are worded already."""
    value = run.recipe.get(key)
    if key != "model" and (value is None or _goes_without_saying(run, key, value)):
        return None
    return _spelled(language, run, key)


def _spelled(language: Language, run: Run, key: str) -> str:
    value = run.recipe.get(key)
    return _named(language, key, value) if isinstance(value, bool) else axis_text(language, run, key)


def _worded(language: Language, key: str, values: str) -> str:
    """The values of a key as a phrase: Genauigkeit: …; names and whole phrases stand alone."""
    message = f"condition.{key}"
    return language.text(message, value=values) if language.has(message) else values


def _named(language: Language, key: str, value: Any) -> str:
    if isinstance(value, bool):
        return language.text(f"condition.{key}.{'true' if value else 'false'}")
    return language.text(f"condition.{key}", value=value_text(language, key, value))


def _goes_without_saying(run: Run, key: str, value: Any) -> bool:
    if key == "foreach":
        return value == (run.recipe.get("optim") == "adamw_torch")
    if key == "base_dtype":
        return value == ("float32" if run.recipe.get("precision") in _FP32_WEIGHTS else "bfloat16")
    return key in _QUIET and value == _QUIET[key]


def sentences(language: Language, runs: Sequence[Run], shown: Collection[str]) -> list[str]:
    """The whole caption of figures of runs: conditions, evidence, warnings."""
    held = " · ".join(conditions(language, runs, shown))
    lines = [language.text("caption.conditions", conditions=held), _evidence(language, runs, shown)]
    return lines + list(dict.fromkeys(_warnings(language, runs).values()))


Settings = dict[tuple[str, str], str | None]
"""Value of a recipe key by (key, method); None where there are several."""


@dataclass
class Told:
    """What the captions of one page have said so far."""

    settings: Settings = field(default_factory=dict)
    """As the first caption with runs has them."""
    evidence: str = ""
    """What that caption says stands behind its figures."""
    warned: set[tuple[str, str]] = field(default_factory=set)
    """Models and what is not modelled of them."""
    lines: set[str] = field(default_factory=set)


class Note:
    """The caption of one table or chart: in full, or where the page has said most of it already, what is new."""

    def __init__(self, language: Language, told: Told | None = None) -> None:
        self._language = language
        self._told = told if told is not None else Told()
        self._whole: list[str | Markup] = []
        self._new: list[str | Markup] = []
        self._as_above: str | None = None

    def say(self, *lines: str) -> None:
        """Sentences that hold for this table alone."""
        self._whole += lines
        self._new += lines

    def repeat(self, *lines: str) -> None:
        """Sentences that one reading per page is enough for."""
        self._whole += lines
        self._new += [line for line in lines if line not in self._told.lines]
        self._told.lines.update(lines)

    def hold_for(self, runs: Sequence[Run], shown: Collection[str]) -> None:
        """The conditions of runs, without the keys that are `shown`, and what stands behind the figures."""
        language, told = self._language, self._told
        conditions, evidence, *rest = sentences(language, runs, shown)
        settings, kind = _settings(language, runs, shown), _kind(runs)
        self._whole += [conditions, to_accuracy(evidence, kind), *rest]
        warnings = _warnings(language, runs)
        if told.settings:
            fresh = _differing(language, runs, shown, settings, told.settings)
            key = "caption.as_above.but" if fresh else "caption.as_above"
            self._as_above = language.text(key, conditions=" · ".join(fresh))
        else:
            told.settings, told.evidence = settings, evidence
            self._new.append(conditions)
        # The way to the error stands open below every table and chart; what the page has said, it need not say again.
        said = self._as_above is not None and evidence == told.evidence
        self._new.append(to_accuracy(language.text("caption.accuracy") if said else evidence, kind))
        for key, warning in warnings.items():
            warned = {(run.name, key) for run in runs if key in run.warnings}
            # That a model has more than its text part may be opened; what changes the figures may not be overlooked.
            if self._as_above is None or not (warned <= told.warned or key.startswith(_OMITS)):
                self._new.append(warning)
            told.warned |= warned

    def hold_for_amounts(self, rows: Sequence[Amount], shown: Collection[str]) -> None:
        """The conditions of amounts beside the step, what they mean, and that they are worked out from the code."""
        language, runs = self._language, list(dict.fromkeys(row.run for row in rows))
        held = " · ".join(conditions(language, runs, shown))
        self.say(language.text("caption.conditions", conditions=held))
        kept = language.number(runs[0].checkpoints_kept)
        mapped = language.gb(runs[0].host.mapped)
        self.repeat(language.text(rows[0].CAPTION, kept=kept, mapped=mapped, batch=language.number(EVALUATION_BATCH)))
        evidence = to_accuracy(language.text(rows[0].EVIDENCE), "arithmetic")
        self._whole.append(evidence)
        self._new.append(evidence)

    def written(self) -> Markup:
        """The caption's HTML, empty if there is nothing to say."""
        new = Markup(" ").join(self._new)
        if self._as_above is None:
            return new
        folded = element(
            "details",
            element("summary", self._as_above) + element("p", Markup(" ").join(self._whole)),
            class_="vg-caption__all",
        )
        return new + folded


def speed(language: Language, runs: Sequence[Run], shown: Collection[str]) -> list[str]:
    """What speeds, times and costs in a table rest on, and the data set that they hold for."""
    if not {"tokens_per_second", "duration", "cost"} & set(shown):
        return []
    said = [language.text("caption.speed")]
    asked = questions_from_keys(runs[0].keys)
    if {"duration", "cost"} & set(shown):
        tokens, epochs = language.count(int(asked["dataset_tokens"])), asked["epochs"]
        count = int(epochs) if epochs == int(epochs) else Fraction(epochs)
        said.append(language.plural("caption.dataset", count, tokens=tokens, epochs=language.number(count)))
    if "cost" in shown:
        said.append(language.text("caption.price", price=language.number(exact(asked["price_per_hour"]), 2)))
    return said


def _settings(language: Language, runs: Sequence[Run], shown: Collection[str]) -> Settings:
    settings: Settings = {}
    for key, run in itertools.product(_ORDER, runs):
        if key not in shown and _applies(run, key):
            place = (key, "" if key in _OF_RUN else str(run.recipe["method"]))
            value = _spelled(language, run, key)
            settings[place] = value if settings.get(place, value) == value else None
    return settings


def _differing(
    language: Language,
    runs: Sequence[Run],
    shown: Collection[str],
    settings: Settings,
    above: Settings,
) -> list[str]:
    """The phrases of what is not as above; what is as the house recipe has it only where it was not so above."""
    phrases = _phrases(language, runs, shown)
    # A method that the first caption has nothing to say of is as the others there, if they agree.
    common: dict[str, set[str | None]] = {}
    for (key, _), value in above.items():
        common.setdefault(key, set()).add(value)
    differing: dict[str, str] = {}
    for (key, method), value in settings.items():
        before = {above[key, method]} if (key, method) in above else common.get(key, set())
        if value is not None and before == {value}:
            continue
        if key in phrases:
            differing[key] = phrases[key]
        elif key in _QUIET and before and value is not None:
            differing[key] = _worded(language, key, value)
    return list(differing.values())


def _warnings(language: Language, runs: Sequence[Run]) -> dict[str, str]:
    """What is not modelled, each once, naming the models where it does not hold for all; left-out parts last."""
    lines = {}
    found = dict.fromkeys(key for run in runs for key in run.warnings if key not in _AT_WILL)
    for key in sorted(found, key=lambda key: key.startswith(_OMITS)):
        warning = language.text(f"warning.{key}")
        warned = dict.fromkeys(run.name for run in runs if key in run.warnings)
        if len(warned) < len({run.name for run in runs}):
            warning = language.text("caption.warned", where=language.listing(warned), warning=warning)
        lines[key] = warning
    return lines


def to_accuracy(words: str, kind: str) -> Markup:
    """Words as a link to what the page on accuracy says about figures with this evidence.

    `article:` stands for the way to the page, which differs from page to page; overrides/hooks/crossings.py puts it in.
    """
    return element("a", words, href=f"article:accuracy.md#{_ANCHORS[kind]}", class_="vg-evidence")


_ANCHORS = {"oracle": "simulation", "measured": "gpus", "arithmetic": "not-compared", "mixed": "evidence"}


def _kind(runs: Sequence[Run]) -> str:
    """What stands behind the figures of all these runs, or that it differs."""
    kinds = {run.evidence for run in runs}
    if len(kinds) == 1:
        return kinds.pop()
    return "mixed" if "arithmetic" in kinds else "oracle"


def _evidence(language: Language, runs: Sequence[Run], shown: Collection[str]) -> str:
    kind = _kind(runs)
    if kind != "mixed":
        return language.text(f"caption.evidence.{kind}")
    bare = {run: "arithmetic" if run.evidence == "arithmetic" else None for run in runs}
    where = _axis_that_explains(language, runs, bare, shown)
    if where is None:
        axes = [key for key in shown if all(key in run.recipe for run in runs)] or ["model", "method"]
        names = dict.fromkeys(" ".join(axis_text(language, run, key) for key in axes) for run in runs if bare[run])
        return language.text("caption.evidence.mixed", where=language.listing(names))
    return language.text("caption.evidence.mixed", where=language.listing(where["arithmetic"]))


def rounding(language: Language, values: Sequence[int]) -> list[str]:
    """The sentence that says so, if the printed parts do not give the printed sum (the last value)."""
    *parts, total = values
    decimals = units.gb_column_decimals(list(values))
    printed = sum(units.rounded(part, units.GB, decimals) for part in parts)
    return [] if printed == units.rounded(total, units.GB, decimals) else [language.text("caption.rounded")]


def verdict_limit(language: Language) -> str:
    return language.text("caption.verdict", limit=language.percent(Fraction(COMFORTABLE_PERCENT, 100)))


def box_figures(language: Language, rows: Iterable[Any], names: Collection[str]) -> list[str]:
    """The sentence that names cards whose memory is the vendor's figure, where a column depends on it."""
    if not any(name in _OF_CARD for name in names):
        return []
    cards = (row.gpu if isinstance(row, Run) else row for row in rows)
    boxed = dict.fromkeys(card.name for card in cards if isinstance(card, Gpu) and card.memory_mib_source == "box")
    return [language.text("caption.box", gpus=language.listing(boxed))] if boxed else []
