"""`python -m macros measurements add FILE`: check a record of a run and put it into data/measurements.yml.

A record is checked as it stands in FILE, by everything that `data/measurements.yml` must meet, so a mistake is
reported at its line there. The data file is changed by one insertion: its comments and the other records stay.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from macros import yamlfile
from macros.datafile import load_with, replace, start_of
from macros.dataset import Dataset
from macros.findings import DataErrors, Finding, quote
from macros.recipes import estimate_keys
from macros.records import MIB, Measurement

ROOT = Path(__file__).parent.parent
PATH = "data/measurements.yml"
# What a new data/measurements.yml begins with.
HEADER = "# Readings of real runs; `python -m macros measurements add` checks one and puts it in.\n"


def add(file: Path, root: Path = ROOT) -> list[Measurement]:
    """Put the records of `file` into data/measurements.yml below `root` and return them.

    Raises `DataErrors` with every finding, and then changes nothing.
    """
    document = yamlfile.read(file)
    dataset = load_with(root, PATH, file.read_text(encoding="utf-8"), shown=str(file))
    added = list(dataset.measurements)
    findings = [] if added else [Finding(str(file), 1, "holds no record; expected one as the measuring script writes it")]
    findings += [finding for record in added for finding in doubts(dataset, record, document)]
    text = (root / PATH).read_text(encoding="utf-8") if (root / PATH).exists() else HEADER
    present = yamlfile.parse(text, PATH)
    for record in added:
        if record.key in (present.value or {}):
            says = f"{PATH}:{present.line(record.key)} has {quote(record.key)} already; another reading needs another key"
            findings.append(Finding(str(file), document.line(record.key), says))
    if findings:
        raise DataErrors(findings)
    for key, source, block in _blocks(file.read_text(encoding="utf-8")):
        text = _inserted(text, key, source, block)
    load_with(root, PATH, text, shown=PATH)  # the file as a whole, before it replaces the old one
    replace(root / PATH, text)
    return added


def doubts(dataset: Dataset, record: Measurement, document: yamlfile.Document) -> Iterator[Finding]:
    """What cannot be right in a reading: a recipe that its model cannot run, counters out of order, more than the card has."""

    def finding(*place: str, says: str) -> Finding:
        return Finding(document.path, document.line(record.key, *place), f"{'.'.join((record.key, *place))}: {says}")

    if record.recipe is not None and (record.model or record.config):
        shape = {"model": record.model} if record.model else {"config": record.config}
        try:
            estimate_keys(dataset, {**shape, **record.recipe})
        except ValueError as error:
            yield finding("recipe", says=str(error))
    counters = [name for name in ("allocated", "reserved", "device") if name in record.observed]
    for lower, upper in zip(counters, counters[1:], strict=False):
        if record.observed[lower] > record.observed[upper]:
            says = f"expected at least {lower} ({record.observed[lower]}), got {record.observed[upper]}"
            yield finding("observed", upper, says=says)
    if record.gpu is not None:
        card = dataset.gpus[record.gpu]
        for name in counters:
            if not MIB <= record.observed[name] <= card.memory:
                says = f"expected bytes, at most the {card.memory} of the {card.name}, got {record.observed[name]}"
                yield finding("observed", name, says=says)


def _blocks(text: str) -> list[tuple[str, str, str]]:
    """Key, source and text of the records of a file, in its order; comments right above a record belong to it."""
    document = yamlfile.parse(text, PATH)
    records = document.value or {}
    lines = text.splitlines(keepends=True)
    starts = [start_of(lines, document.line(key)) for key in records]
    ends = [*starts[1:], len(lines)]
    return [
        (key, value["source"], "".join(lines[start:end]).strip("\n") + "\n")
        for (key, value), start, end in zip(records.items(), starts, ends, strict=True)
    ]


def _inserted(text: str, key: str, source: str, block: str) -> str:
    """The file's text with one more record: by key among those of its source, or at the end if that is new."""
    document = yamlfile.parse(text, PATH)
    keys = list(document.value or {})
    group = [other for other in keys if document.value[other].get("source") == source]
    before = next((other for other in group if other > key), None)
    if before is None and group and group[-1] != keys[-1]:
        before = keys[keys.index(group[-1]) + 1]
    if before is None:
        return f"{text.rstrip()}\n\n{block}"
    lines = text.splitlines(keepends=True)
    start = start_of(lines, document.line(before))
    return "".join([*lines[:start], block, "\n", *lines[start:]])


def main(arguments: Sequence[str]) -> int:
    """The command. Returns the exit code; findings go to standard error."""
    parser = argparse.ArgumentParser(prog="python -m macros measurements", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    adding = commands.add_parser("add", help=f"check a record and put it into {PATH}")
    adding.add_argument("file", type=Path, metavar="FILE", help="a record as the measuring script writes it")
    options = parser.parse_args(arguments)
    try:
        added = add(options.file)
    except DataErrors as errors:
        print(errors, file=sys.stderr)
        return 1
    for record in added:
        print(f"{PATH}: added {record.key}")
    return 0
