"""`python -m macros export FOLDER`: the data of the guide and its estimates as files for other programs.

JSON and CSV are UTF-8. A CSV file is as RFC 4180 wants it (commas, CRLF, quotes doubled), its first row names the columns,
an empty cell is a value that does not exist, and a text that a spreadsheet would take for a formula begins with an
apostrophe. What a mapping holds is spread over columns with a dot in their names.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from macros import browser, open_data, portable, recipes, records
from macros.dataset import Dataset, load
from macros.estimator.recipe import METHODS
from macros.findings import DataErrors
from macros.records import Gpu
from macros.run import idle_keys

ROOT = Path(__file__).parent.parent
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
# A spreadsheet runs a cell that begins with one of these.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

Row = dict[str, Any]


def texts(dataset: Dataset) -> dict[str, str]:
    """The text of every published file by its name; the same data gives the same bytes."""
    rows = {"measurements.csv": [_flat(records.published(run)) for run in dataset.measurements]}
    rows["estimates.csv"] = list(estimates(dataset))
    texts = {name: table(found) for name, found in rows.items()}
    for name in open_data.RECORDS:
        file = open_data.FILES[f"{name}.json"]
        listed = [records.published(record) for record in getattr(dataset, name)]
        texts[file.name] = _json({"$schema": file.schema, "version": open_data.VERSION, name: listed})
        texts[str(file.schema)] = _json(_document_schema(name))
    for name, found in rows.items():
        known = open_data.ESTIMATES if name == "estimates.csv" else {}
        texts[str(open_data.FILES[name].schema)] = _json(row_schema(name, found, known))
    return {**texts, "estimator.js": portable.script(dataset)}


def estimates(dataset: Dataset) -> Iterator[Row]:
    """One row for each model, method, length and batch: conditions, figures, and the verdict for each class of cards."""
    classes, known = card_classes(dataset.gpus), portable.data(dataset)
    for model in dataset.models:
        for method in METHODS:
            for length in open_data.LENGTHS:
                for batch in open_data.BATCHES:
                    keys = {"model": model.key, "method": method, "sequence_length": length, "micro_batch_size": batch}
                    yield _estimate(dataset, known, keys, classes)


def card_classes(gpus: Iterable[Gpu]) -> dict[int, Gpu]:
    """By the number on the box, smallest first, the card of that class that offers least; unified memory is no class."""
    least: dict[int, Gpu] = {}
    for gpu in sorted(gpus, key=lambda gpu: (gpu.box_gb, gpu.memory)):
        if gpu.segment != "unified":
            least.setdefault(gpu.box_gb, gpu)
    return least


def _estimate(dataset: Dataset, known: dict[str, Any], keys: Mapping[str, Any], classes: Mapping[int, Gpu]) -> Row:
    found = recipes.result(recipes.estimate_keys(dataset, keys))
    figures = {name: value for name, value in found.items() if name not in ("conditions", "moments", "warnings")}
    idle = {"gpu", *idle_keys(found["conditions"])}
    conditions = {name: None if name in idle else value for name, value in found["conditions"].items() if name != "gpu"}
    row = {**keys, **_flat(conditions), **_flat(figures), "warnings": " | ".join(found["warnings"])}
    verdicts = {card["gpu"]: card["verdict"] for card in browser.cards_keys(known, dict(keys))}
    return row | {open_data.verdict_column(box): verdicts[gpu.key] for box, gpu in classes.items()}


def _flat(values: Mapping[str, Any], prefix: str = "") -> Row:
    """Nested mappings as one row: `recipe.method`; lists become JSON text."""
    row: Row = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            row |= _flat(value, f"{prefix}{name}.")
        else:
            row[prefix + name] = json.dumps(value, ensure_ascii=False) if isinstance(value, (list, tuple)) else value
    return row


def table(rows: Sequence[Row]) -> str:
    """Rows as CSV."""
    columns = columns_of(rows)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([_cell(row.get(name)) for name in columns] for row in rows)
    return text.getvalue()


def columns_of(rows: Iterable[Row]) -> list[str]:
    """The columns of all rows: each behind the one that it follows in the first row that has it."""
    columns: list[str] = []
    for row in rows:
        before = -1
        for name in row:
            if name not in columns:
                columns.insert(before + 1, name)
            before = columns.index(name)
    return columns


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    text = str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def _document_schema(name: str) -> dict[str, Any]:
    """The JSON Schema of one JSON file."""
    record = records.published_schema(name)
    definitions = record.pop("$defs", {})
    return {
        "$schema": _DIALECT,
        "title": f"{name}.json",
        "type": "object",
        "required": ["version", name],
        "properties": {
            "$schema": {"type": "string"},
            "version": {"const": open_data.VERSION},
            name: {"type": "array", "items": record},
        },
        **({"$defs": definitions} if definitions else {}),
    }


_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}


def row_schema(name: str, rows: Sequence[Row], known: Mapping[str, str]) -> dict[str, Any]:
    """The JSON Schema of one row of a CSV file whose cells were read as numbers, true, false, text or nothing."""
    columns = dict.fromkeys(column for row in rows for column in row)
    properties = {}
    for column in columns:
        found = {type(row.get(column)) for row in rows}
        kinds = sorted(_TYPES[kind] for kind in found if kind in _TYPES)
        empty = type(None) in found or any(row.get(column) == "" for row in rows)
        properties[column] = {"type": [*kinds, "null"] if empty else kinds}
        if column in known:
            properties[column]["description"] = known[column]
    return {
        "$schema": _DIALECT,
        "title": f"a row of {name}",
        "type": "object",
        "required": list(known),
        "properties": properties,
        "additionalProperties": False,
    }


def write(folder: Path, dataset: Dataset) -> list[Path]:
    """Write all files into a folder, which is made; returns them."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in texts(dataset).items():
        (folder / name).write_bytes(text.encode("utf-8"))
        written.append(folder / name)
    return written


def main(arguments: Sequence[str]) -> int:
    """The command. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m macros export", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help=f"where to write what the site has in {open_data.FOLDER}/")
    options = parser.parse_args(arguments)
    try:
        written = write(options.folder, load(ROOT))
    except DataErrors as errors:
        print(errors, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    for file in written:
        print(f"{file} {file.stat().st_size}")
    return 0
