"""A recipe → a checklist: questions whose items carry the run's own figures; prints, and copies as Markdown.

The items are in `data/checklists.yml`, with their text in each language beside each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup, escape

from macros import caption, figures, yamlfile
from macros.estimator.fit import COMFORTABLE_PERCENT
from macros.figures import element, joined
from macros.findings import DataErrors, Finding, suggest
from macros.language import CODES, Language, placeholders
from macros.run import Run

PATH = "data/checklists.yml"


@dataclass(frozen=True)
class Item:
    """One question with its texts by language; the slots are names of `SLOTS`."""

    key: str
    texts: Mapping[str, str]


Checklists = Mapping[str, tuple[Item, ...]]

# What an item may say about the run. A plain text is escaped, a figure keeps its markup.
SLOTS: Mapping[str, Callable[[Language, Run], str]] = {
    "model": lambda language, run: run.name,
    "method": lambda language, run: caption.axis_text(language, run, "method"),
    "parameters": lambda language, run: figures.parameters(language, run.parameters),
    "trainable": lambda language, run: figures.parameters(language, run.trainable_parameters),
    "peak": lambda language, run: figures.headline(language, run.peak),
    "device": lambda language, run: figures.gb(language, run.device),
    "comfortable": lambda language, run: figures.gb(
        language, max(-(-run.peak * 100 // COMFORTABLE_PERCENT), run.device.high)
    ),
    "moment": lambda language, run: language.text(f"moment.{run.moment}"),
    "length": lambda language, run: figures.number(language, run.recipe["sequence_length"]),
    "batch": lambda language, run: figures.number(language, run.recipe["micro_batch_size"]),
    "tokens": lambda language, run: figures.number(
        language, run.recipe["sequence_length"] * run.recipe["micro_batch_size"]
    ),
    "per_step": lambda language, run: figures.number(
        language,
        run.recipe["sequence_length"] * run.recipe["micro_batch_size"] * run.recipe["gradient_accumulation_steps"],
    ),
    "download": lambda language, run: figures.gb(language, run.download),
    "checkpoint": lambda language, run: figures.gb(language, run.checkpoint),
    "disk": lambda language, run: figures.gb(language, run.download + 3 * run.checkpoint),
    "optimizer": lambda language, run: str(run.recipe["optim"]),
}


def load(root: Path) -> Checklists:
    """All checklists of `data/checklists.yml`. Raises `DataErrors` with every finding."""
    document = yamlfile.read(root / PATH, PATH)
    findings: list[Finding] = []
    lists: dict[str, tuple[Item, ...]] = {}
    for name, items in _mapping(document.value).items():
        for key, texts in _mapping(items).items():
            findings += [
                Finding(PATH, document.line(name, key), f"{name}.{key}: {message}") for message in _wrong(texts)
            ]
        if not _mapping(items):
            findings.append(Finding(PATH, document.line(name), f"{name}: expected items"))
        lists[name] = tuple(Item(key, texts) for key, texts in _mapping(items).items())
    if findings:
        raise DataErrors(findings)
    return lists


def _mapping(value: object) -> Mapping:
    return value if isinstance(value, Mapping) else {}


def _wrong(texts: object) -> list[str]:
    if (
        not isinstance(texts, Mapping)
        or set(texts) != set(CODES)
        or not all(isinstance(text, str) for text in texts.values())
    ):
        return [f"expected a text for each of {', '.join(CODES)}"]
    slots = {code: placeholders(text) for code, text in texts.items()}
    wrong = [
        f"no figure {slot!r}{suggest(slot, SLOTS)}; there are {', '.join(SLOTS)}"
        for slot in sorted(set().union(*slots.values()))
        if slot not in SLOTS
    ]
    if len({frozenset(names) for names in slots.values()}) > 1:
        wrong.append("the languages name different figures")
    return wrong


def checklist(language: Language, run: Run, name: str, lists: Checklists) -> Markup:
    """The items as boxes to tick, then the same as Markdown to copy, then what the figures hold for."""
    if name not in lists:
        raise ValueError(f"{PATH} has no {name!r}{suggest(name, lists)}")
    filled = {slot: write(language, run) for slot, write in SLOTS.items()}
    texts = [Markup(escape(item.texts[language.code])).format(**filled) for item in lists[name]]
    items = joined(
        element("li", element("label", Markup('<input type="checkbox"> ') + element("span", text))) for text in texts
    )
    lines = caption.sentences(language, [run], ())
    plain = [f"- [ ] {text.striptags()}" for text in texts] + ["", lines[0]]
    # A line break inside a macro's output would end an admonition; as a reference it does not.
    block = Markup("&#10;").join(plain)
    copy = element(
        "details",
        element("summary", language.text("checklist.markdown")) + element("pre", element("code", block)),
        class_="vg-checklist__markdown",
    )
    note = element("p", " ".join(lines), class_="vg-caption")
    return element(
        "div",
        element("ul", items, class_="vg-checklist__items") + copy + note,
        class_="vg-checklist",
        data_checklist=name,
    )
