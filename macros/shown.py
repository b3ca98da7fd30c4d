"""What the calculator says in a language: answers of browser.py → texts, the same in the page and at build time.

    settled_keys(data, keys)             the keys less those that contradict the others, and which these were
    result_texts(data, words, keys, unit)   everything about one recipe
    advice_texts, cards_texts, limits_texts, capacity_texts   the questions beyond it
    problem_text(words, problem)         what is wrong with something that somebody typed

`words` are the messages of one language (macros/messages), `unit` is gb or gib. A text that is empty has nothing to say.
portable.py translates this file.
"""

from __future__ import annotations

import math

from macros.address import short_name
from macros.browser import advice_keys, capacity_keys, cards_keys, changed_keys, estimate_keys, limits_keys, shared_keys
from macros.estimator import units
from macros.estimator.recipe import applicable_keys

_STRETCHED = (
    ("longest_sequence", "sequence_length"),
    ("largest_batch", "micro_batch_size"),
    ("largest_rank", "lora_r"),
    ("smallest_number", "num_gpus"),
)

Words = dict[str, str]
Keys = dict[str, object]
Data = dict[str, object]

_NAMED = ("model", "gpu", "preset")
_OCCASIONS = ("load", "load_by_each", "training", "save", "resume", "merge")
_PURPOSES = ("download", "checkpoints", "merged", "dataset", "total")
_EVENTS = ("load", "kbit_preparation", "evaluation", "save", "resume", "merge")


def settled_keys(data: Data, keys: Keys) -> dict[str, object]:
    """{"keys", "dropped": keys that were left out, "sentence"}: with `sentence` nothing can be calculated.

    What somebody set can contradict another setting; the one that the estimator names is left out, or else the first
    without which it calculates.
    """
    kept = dict(keys)
    dropped = []
    while True:
        sentence = _refusal(data, kept)
        if sentence == "":
            return {"keys": kept, "dropped": dropped, "sentence": ""}
        blamed = _blamed(data, kept, sentence)
        if blamed is None:
            return {"keys": kept, "dropped": dropped, "sentence": sentence}
        dropped.append(blamed)
        del kept[blamed]


def _refusal(data: Data, keys: Keys) -> str:
    try:
        estimate_keys(data, keys)
    except ValueError as error:
        return str(error)
    return ""


def _blamed(data: Data, keys: Keys, sentence: str) -> str | None:
    free = [key for key in keys if key not in ("model", "config", "method")]
    for key in free:
        if sentence.startswith(key + " "):
            return key
    for key in reversed(free):
        if _refusal(data, {name: value for name, value in keys.items() if name != key}) == "":
            return key
    return None


# Texts


def text(words: Words, key: str, slots: dict[str, str] | None = None) -> str:
    """A message with its placeholders filled."""
    said = words[key]
    if slots is not None:
        for name, value in slots.items():
            said = said.replace("{" + name + "}", value)
    return said


def counted(words: Words, key: str, number: str) -> str:
    """A counted message, by what is printed."""
    return text(words, f"{key}.{'one' if number == '1' else 'other'}", {"number": number})


def amount(words: Words, size: int, unit: str) -> str:
    """Bytes in the unit that the reader chose."""
    marks = (words["mark.decimal"], words["mark.group"], words["mark.minus"])
    number = units.gib_text(size, *marks) if unit == "gib" else units.gb_text(size, *marks)
    return text(words, "unit.gib" if unit == "gib" else "unit.gb", {"number": number})


def amounts(words: Words, low: int, high: int, unit: str) -> str:
    """A range of bytes."""
    marks = (words["mark.decimal"], words["mark.group"], words["mark.minus"])
    ends = [units.gib_text(size, *marks) if unit == "gib" else units.gb_text(size, *marks) for size in (low, high)]
    return text(words, "unit.gib" if unit == "gib" else "unit.gb", {"number": between(words, ends[0], ends[1])})


def between(words: Words, low: str, high: str) -> str:
    """`17–18`, or one number where both print alike."""
    return low if low == high else text(words, "range", {"low": low, "high": high})


def significant(words: Words, value: float) -> str:
    """An estimated number with two significant digits."""
    thousandths = math.floor(value * 1000 + 0.5)
    return units.significant_text(thousandths, 1000, 2, words["mark.decimal"], words["mark.group"])


def whole(words: Words, number: int) -> str:
    """A whole number, grouped from five digits on."""
    return units.grouped(number, words["mark.group"])


def value_text(words: Words, key: str, value: object) -> str:
    """A recipe value in the reader's language; names of options stay as they are."""
    if value is None:
        return words["value.none"]
    if isinstance(value, bool):
        return words["value.yes" if value else "value.no"]
    if isinstance(value, (int, float)):
        # A whole float prints as a whole number: in the script the two are one.
        if value == math.floor(value):
            return whole(words, math.floor(value))
        return f"{value}".replace(".", words["mark.decimal"])
    if isinstance(value, (list, tuple)):
        return ", ".join(value) if value else words["calculator.nothing"]
    return words.get(f"{key}.{value}", value)


def _percent(size: int, whole_size: int) -> str:
    """A share as a width in a style sheet."""
    return units.decimal_text(size * 100, whole_size, 3, True, ".", "", "-") if whole_size > 0 else "0"


# One recipe


def result_texts(data: Data, words: Words, keys: Keys, unit: str) -> dict[str, object]:
    """{"verdict", "answer", "peak", "facts", "parts", "moments", "warnings", "settings", "applicable", …} of one recipe."""
    found = estimate_keys(data, keys)
    conditions = found["conditions"]
    peak = found["peak_bytes"]
    verdict = found.get("verdict")
    return {
        "verdict": verdict if verdict is not None else "",
        "badge": words[f"verdict.{verdict}"] if verdict is not None else "",
        "answer": answer_text(data, words, found, unit),
        "peak": amount(words, peak, unit),
        "peak_bytes": peak,
        "other": amount(words, peak, "gb" if unit == "gib" else "gib"),
        "facts": _facts(data, words, found, unit),
        "parts": _parts(words, found, unit),
        "card": _card(data, words, found, unit),
        "moments": _moments(words, found, unit),
        "moment": _largest(words, found, unit),
        "warnings": [words.get(f"warning.{key}", key) for key in found["warnings"]],
        "events": _rows(words, found["events"], _EVENTS, "event", unit),
        "host": _rows(words, found["host_bytes"], _OCCASIONS, "occasion", unit),
        "disk": _rows(words, found["disk_bytes"], _PURPOSES, "purpose", unit),
        "evidence": words[f"caption.evidence.{found['evidence']}"],
        "evidence_kind": found["evidence"],
        "settings": {key: value_text(words, key, conditions[key]) for key in conditions if key not in _NAMED},
        "applicable": [*_applicable(conditions)],
        "tokens": _tokens(words, keys),
    }


def settings_texts(data: Data, words: Words, keys: Keys) -> list[list[str]]:
    """[key, label, text] of every setting of a recipe, in one order for all recipes."""
    conditions = estimate_keys(data, keys)["conditions"]
    config = keys.get("config")
    name = data["models"][conditions["model"]]["name"] if config is None else f"config.json ({config.get('model_type')})"
    gpu = conditions["gpu"]
    rows = [
        ["model", words["column.model"], name],
        ["gpu", words["column.gpu"], data["gpus"][gpu]["name"] if gpu is not None else words["value.none"]],
        ["preset", words["column.preset"], data["presets"][conditions["preset"]]["name"]],
    ]
    applicable = _applicable(conditions)
    for key in conditions:
        if key not in _NAMED:
            said = value_text(words, key, conditions[key]) if short_name(key) in applicable else words["value.none"]
            rows.append([key, words[f"column.{key}"], said])
    return rows


def answer_text(data: Data, words: Words, found: dict[str, object], unit: str) -> str:
    """The verdict as a sentence: whether it fits the card, and by how much."""
    gpu = found["conditions"]["gpu"]
    if gpu is None:
        return text(words, "calculator.answer.no_card", {"peak": amount(words, found["peak_bytes"], unit)})
    headroom = found["headroom_bytes"]
    slots = {"gpu": data["gpus"][gpu]["name"], "amount": amount(words, headroom if headroom > 0 else -headroom, unit)}
    return text(words, f"calculator.answer.{found['verdict']}", slots)


def _applicable(conditions: dict[str, object]) -> list[str]:
    """The keys that mean something beside these settings."""
    keys = []
    for key in applicable_keys(conditions["method"]):
        if key == "fsdp_version" and conditions["parallelism"] != "fsdp":
            continue
        if key == "master_gradients" and conditions["precision"] != "bf16-master":
            continue
        if key == "foreach" and conditions["optim"] != "adamw_torch":
            continue
        if key in ("checkpoint_offload", "use_reentrant") and not conditions["gradient_checkpointing"]:
            continue
        if key in ("double_quant", "quant_storage") and conditions["quantization"] not in ("nf4", "fp4"):
            continue
        if key == "parallelism" and conditions["num_gpus"] == 1 and conditions["parallelism"] == "none":
            continue
        if key == "offload_optimizer" and conditions["parallelism"] in ("none", "ddp", "fsdp"):
            continue
        if key == "offload_params" and conditions["parallelism"] not in ("zero3", "fsdp"):
            continue
        if key == "trained_token_share" and (conditions["loss"] == "standard" or conditions["objective"] == "grpo"):
            continue
        if key == "reference" and conditions["objective"] == "sft":
            continue
        if key in ("num_generations", "prompt_length", "generation") and conditions["objective"] != "grpo":
            continue
        if key == "vllm_memory_share" and conditions["generation"] != "vllm":
            continue
        keys.append(short_name(key))
    return keys


def _facts(data: Data, words: Words, found: dict[str, object], unit: str) -> list[list[str]]:
    """[name, label, text] of what is worth a line each."""
    conditions = found["conditions"]
    cards = conditions["num_gpus"]
    facts = [["peak", words["calculator.per_gpu" if cards > 1 else "column.peak"], amount(words, found["peak_bytes"], unit)]]
    if cards > 1:
        facts.append(["total", words["column.all_gpus"], amount(words, found["total_bytes"], unit)])
    if conditions["gpu"] is not None:
        facts.append(["memory", words["column.memory"], amount(words, data["gpus"][conditions["gpu"]]["memory"], unit)])
    device, reserved = found["device_bytes"], found["reserved_bytes"]
    facts.append(["device", words["calculator.device"], amounts(words, device["low"], device["high"], unit)])
    facts.append(["reserved", words["column.reserved"], amounts(words, reserved["low"], reserved["high"], unit)])
    facts.append(["host", words["column.host_peak"], amount(words, found["host_bytes"]["peak"], unit)])
    facts.append(["disk", words["column.disk_total"], amount(words, found["disk_bytes"]["total"], unit)])
    for name in ("parameters", "trainable_parameters"):
        facts.append([name, words[f"column.{name}"], _count(words, found[name])])
    return [*facts, *_speed(words, found)]


def _speed(words: Words, found: dict[str, object]) -> list[list[str]]:
    """Speed, time and cost, or why there is none."""
    rate = found.get("tokens_per_second")
    if rate is None:
        return [["speed", words["column.tokens_per_second"], words["calculator.no_speed"]]] if found["conditions"]["gpu"] is not None else []
    number = between(words, significant(words, rate["low"]), significant(words, rate["high"]))
    facts = [["speed", words["column.tokens_per_second"], text(words, "unit.tokens_per_second", {"number": number})]]
    hours = found.get("hours")
    if hours is not None:
        low, high = hours["low"] * 3600, hours["high"] * 3600
        unit = units.time_unit(high)
        name = {units.SECOND: "seconds", units.MINUTE: "minutes", units.HOUR: "hours", units.DAY: "days"}[unit]
        number = between(words, significant(words, low / unit), significant(words, high / unit))
        facts.append(["time", words["column.duration"], counted(words, f"span.{name}", number)])
    cost = found.get("cost")
    if cost is not None:
        facts.append(["cost", words["column.cost"], between(words, significant(words, cost["low"]), significant(words, cost["high"]))])
    return facts


def _tokens(words: Words, keys: Keys) -> str:
    """The size of the data set in words, beside the field in which it is a row of digits."""
    tokens = keys.get("dataset_tokens", 0)
    return _count(words, tokens) if tokens > 0 else ""


def _count(words: Words, number: int) -> str:
    scale = {units.BILLION: "billion", units.MILLION: "million", 1: "plain"}[units.count_scale(number)]
    return text(words, f"count.{scale}", {"number": units.count_text(number, words["mark.decimal"], words["mark.group"])})


def _longest(data: Data, found: dict[str, object]) -> int:
    """Bytes that the whole width of the bar stands for: the card, or the peak where that is more."""
    gpu = found["conditions"]["gpu"]
    return max(found["peak_bytes"], data["gpus"][gpu]["memory"] if gpu is not None else 0)


def _parts(words: Words, found: dict[str, object], unit: str) -> list[dict[str, str]]:
    """The parts at the peak, those that print as more than zero, with their share of the peak."""
    peak = found["peak_bytes"]
    parts = found["moments"][found["moment"]]["parts"]
    return [
        {"part": name, "label": words[f"part.{name}"], "amount": amount(words, size, unit), "share": _percent(size, peak)}
        for name, size in parts.items()
        if size * 1000 >= peak
    ]


def _largest(words: Words, found: dict[str, object], unit: str) -> str:
    """The moment of the peak and what takes most of it."""
    parts = found["moments"][found["moment"]]["parts"]
    part = max(parts, key=lambda name: parts[name])
    slots = {"moment": words[f"moment.{found['moment']}"], "part": words[f"part.{part}"], "amount": amount(words, parts[part], unit)}
    return text(words, "calculator.parts.largest", slots)


def _card(data: Data, words: Words, found: dict[str, object], unit: str) -> dict[str, str]:
    """How wide the peak and the card are beside each other; empty without a card."""
    gpu = found["conditions"]["gpu"]
    if gpu is None:
        return {}
    record = data["gpus"][gpu]
    longest = _longest(data, found)
    slots = {"gpu": record["name"], "amount": amount(words, record["memory"], unit)}
    return {
        "label": text(words, "chart.limit", slots),
        "peak": _percent(found["peak_bytes"], longest),
        "memory": _percent(record["memory"], longest),
    }


def _moments(words: Words, found: dict[str, object], unit: str) -> list[dict[str, object]]:
    peak = found["peak_bytes"]
    return [
        {
            "moment": name,
            "label": words[f"moment.{name}"],
            "amount": amount(words, moment["total"], unit),
            "share": _percent(moment["total"], peak),
            "peak": name == found["moment"],
        }
        for name, moment in found["moments"].items()
    ]


def _rows(words: Words, sizes: dict[str, int], names: tuple[str, ...], kind: str, unit: str) -> list[list[str]]:
    return [
        [words["column.sum"] if name == "total" else words[f"{kind}.{name}"], amount(words, sizes[name], unit)]
        for name in names
        if sizes.get(name, 0) > 0
    ]


# Beyond one recipe


def advice_texts(data: Data, words: Words, keys: Keys, unit: str) -> dict[str, object]:
    """{"sentence", "measures": [{"label", "price", "saving", "peak", "verdict", "badge", "keys"}]}; `keys` are those after it."""
    found = advice_keys(data, keys)
    measures = []
    after = keys
    for measure in found["measures"]:
        after = changed_keys(data, after, measure["changes"])
        values = {key: value_text(words, key, value) for key, value in measure["changes"].items()}
        verdict = measure["verdict"]
        measures.append(
            {
                "name": measure["name"],
                "label": text(words, f"measure.{measure['name']}", values),
                "price": words[f"price.{measure['name']}"],
                "saving": amount(words, measure["saving_bytes"], unit),
                "peak": amount(words, measure["peak_bytes"], unit),
                "verdict": verdict if verdict is not None else "",
                "badge": words[f"verdict.{verdict}"] if verdict is not None else "",
                "keys": after,
            }
        )
    if measures:
        last = found["measures"][-1]["verdict"]
        said = "calculator.advice.open" if last is None else f"calculator.advice.{last}"
    else:
        said = "calculator.advice.none" if found["verdict"] == "comfortable" else "calculator.advice.nothing"
    return {"sentence": words[said], "measures": measures}


def cards_texts(data: Data, words: Words, keys: Keys, unit: str) -> dict[str, object]:
    """{"sentence", "cards": [{"gpu", "name", "memory", "headroom", "verdict", "badge"}]}, the smallest card first."""
    rows = sorted(cards_keys(data, keys), key=lambda row: row["memory_bytes"])
    cards = []
    smallest = None
    for row in rows:
        if smallest is None and row["verdict"] == "comfortable":
            smallest = row["gpu"]
        cards.append(
            {
                "gpu": row["gpu"],
                "name": data["gpus"][row["gpu"]]["name"],
                "memory": amount(words, row["memory_bytes"], unit),
                "headroom": amount(words, row["headroom_bytes"], unit),
                "verdict": row["verdict"],
                "badge": words[f"verdict.{row['verdict']}"],
            }
        )
    if smallest is None:
        return {"sentence": words["calculator.cards.none"], "cards": cards}
    return {"sentence": text(words, "calculator.cards.smallest", {"gpu": data["gpus"][smallest]["name"]}), "cards": cards}


def limits_texts(data: Data, words: Words, keys: Keys, unit: str) -> list[dict[str, object]]:
    """{"name", "label", "comfortable", "tight", "best", "keys"} of each key that can be stretched on the card; none without a card.

    `keys` are those with `best`, the largest value that fits comfortably, or at all; none where nothing fits.
    """
    if keys.get("gpu") is None:
        return []
    found = limits_keys(data, keys)
    rows = []
    for name, key in _STRETCHED:
        bound = found[name]
        if bound is None:
            continue
        best = bound["comfortable"] if bound["comfortable"] > 0 else bound["tight"]
        if best == 0:
            after = None
        elif key == "num_gpus":
            after = shared_keys(data, keys, best)
        else:
            after = {**keys, key: best}
        rows.append(
            {
                "name": name,
                "label": words[f"reach.{name}"],
                "comfortable": _reach(words, bound, "comfortable", name),
                "tight": _reach(words, bound, "tight", name),
                "best": whole(words, best),
                "keys": after,
            }
        )
    return rows


def _reach(words: Words, bound: dict[str, int], which: str, name: str) -> str:
    value = bound[which]
    if value == 0:
        return words["calculator.not_even_one" if name == "smallest_number" else "calculator.does_not_fit"]
    if name != "smallest_number" and value == bound["most"]:
        return text(words, "calculator.at_least", {"number": whole(words, value)})
    return whole(words, value)


def capacity_texts(data: Data, words: Words, keys: Keys, models: list[str], unit: str) -> list[dict[str, object]]:
    """What the card can train, for some of the models: rows with the model's name, and per method verdict, peak and length."""
    rows = []
    for row in capacity_keys(data, keys, models):
        longest = row["longest_sequence"]
        which = "comfortable" if longest["comfortable"] > 0 else "tight"
        rows.append(
            {
                "model": row["model"],
                "name": data["models"][row["model"]]["name"],
                "method": row["method"],
                "peak": amount(words, row["peak_bytes"], unit),
                "verdict": row["verdict"],
                "badge": words[f"verdict.{row['verdict']}"],
                "length": _reach(words, longest, which, "longest_sequence"),
            }
        )
    return rows


def problem_text(words: Words, problem: dict[str, object]) -> str:
    """What is wrong with something that somebody typed or an address holds, and what would be right."""
    label = words.get(f"column.{problem['key']}", problem["name"])
    slots = {
        "label": label,
        "name": problem["name"],
        "value": problem["value"],
        "least": whole(words, problem["least"]),
        "most": whole(words, problem["most"]),
    }
    return text(words, f"calculator.problem.{problem['kind']}", slots)
