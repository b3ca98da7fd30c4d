"""`--config FILE` of the command line with a training configuration: its recipe, and what became of each key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from macros.configs.read import read_config
from macros.configs_script import known
from macros.dataset import Dataset
from macros.language import messages


def recipe_of(dataset: Dataset, text: str, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The keys of a training configuration under those that were typed, and a report, one line for each key that counts.

    Raises `ValueError` with one line for each thing that is refused; a model that was typed settles one that is unknown.
    """
    answer = read_config(known(dataset), text)
    refused = [
        said for said in answer["errors"] if not (given.get("model") and str(said["says"]).startswith("config.model_"))
    ]
    if refused:
        raise ValueError("\n".join(sentence(said) for said in refused))
    report = [f"read as {answer['framework']}"]
    report += [f"{kind}: {sentence(said)}" for kind in ("understood", "assumed") for said in answer[kind]]
    reasons = dict.fromkeys(str(said["says"]) for said in answer["ignored"])
    for says in reasons:
        keys = ", ".join(str(said["key"]) for said in answer["ignored"] if said["says"] == says)
        report.append(f"ignored: {keys}: {messages('en')[says]}")
    return {**answer["recipe"], **given}, report


def sentence(said: Mapping[str, Any]) -> str:
    """One entry of an answer of `read_config` in English: `line 3: bf16 auto: becomes …`."""
    english = messages("en")
    values = {name: english.get(str(value), value) for name, value in said["values"].items()}
    place = f"line {said['line']}: " if said["line"] else ""
    key = " ".join(part for part in (str(said["key"]), str(said["value"])) if part)
    return f"{place}{key + ': ' if key else ''}{english[said['says']].format(**values)}"
