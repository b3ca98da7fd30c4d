"""The open data: they are what their schemas say, they say what the pages say, and no program stumbles over them."""

from __future__ import annotations

import csv
import io
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from macros import export, open_data
from macros.dataset import Dataset, load
from macros.recipes import estimate_keys
from macros.records import MIB
from tests.site_build import LOCALES

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return load(ROOT)


@pytest.fixture(scope="module")
def folder(site: Path) -> Path:
    return site / "data" / "v1"


def rows_of(file: Path) -> list[dict[str, str]]:
    """A CSV file as a program without any knowledge of ours reads it."""
    with open(file, encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, strict=True))


def typed(row: dict[str, str]) -> dict[str, Any]:
    """Cells as numbers, true and false, nothing, or text."""

    def value(cell: str) -> Any:
        if cell == "":
            return None
        try:
            return json.loads(cell) if not cell.startswith(("[", '"')) else cell
        except ValueError:
            return cell

    return {name: value(cell) for name, cell in row.items()}


def errors(schema: Any, value: Any) -> list[str]:
    Draft202012Validator.check_schema(schema)
    return [f"{error.json_path}: {error.message}" for error in Draft202012Validator(schema).iter_errors(value)]


def test_the_site_has_every_file_and_no_other(folder: Path) -> None:
    schemas = {file.schema for file in open_data.FILES.values() if file.schema}
    assert {file.name for file in folder.iterdir()} == {*open_data.FILES, *schemas}


@pytest.mark.parametrize("name", [name for name in open_data.FILES if name.endswith(".json")])
def test_json_is_what_its_schema_says(folder: Path, name: str) -> None:
    document = json.loads((folder / name).read_text(encoding="utf-8"))
    schema = json.loads((folder / document["$schema"]).read_text(encoding="utf-8"))
    assert errors(schema, document) == []
    assert document["version"] == 1
    records = document[name.removesuffix(".json")]
    assert errors(schema, {**document, name.removesuffix(".json"): [{**records[0], "surprise": 1}]})
    assert errors(schema, {**document, name.removesuffix(".json"): [{"key": "x"}]})


@pytest.mark.parametrize("name", [name for name in open_data.FILES if name.endswith(".csv")])
def test_csv_is_what_its_schema_says(folder: Path, name: str) -> None:
    schema = json.loads((folder / str(open_data.FILES[name].schema)).read_text(encoding="utf-8"))
    rows = [typed(row) for row in rows_of(folder / name)]
    assert rows
    # A version such as 2.10 reads like a number; its schema says text.
    texts = {column for column, facts in schema["properties"].items() if set(facts["type"]) <= {"string", "null"}}
    for row, plain in zip(rows, rows_of(folder / name), strict=True):
        row |= {column: plain[column] or None for column in texts}
    assert errors({"type": "array", "items": schema}, rows) == []


@pytest.mark.parametrize("name", [name for name in open_data.FILES if name.endswith(".csv")])
def test_csv_is_rfc_4180_and_no_formula(folder: Path, name: str) -> None:
    data = (folder / name).read_bytes()
    assert not data.startswith(b"\xef\xbb\xbf") and data.decode("utf-8")
    assert data.count(b"\n") == data.count(b"\r\n") and data.endswith(b"\r\n")
    rows = rows_of(folder / name)
    assert all(None not in row and None not in row.values() for row in rows), "a row is longer or shorter than the first"
    cells = [cell for row in rows for cell in row.values()]
    assert not [cell for cell in cells if cell[:1] in "=+@\t\r" and cell]
    assert not [cell for cell in cells if cell.startswith("-") and not re.fullmatch(r"-\d+(\.\d+)?", cell)]


def test_hostile_text_stays_in_its_cell() -> None:
    hostile = ['=HYPERLINK("http://x")', "+1", "@SUM(A1)", "-cmd", "\tx", 'a "quote", and\r\na line', "plain"]
    read = list(csv.reader(io.StringIO(export.table([{"name": text, "n": 1} for text in hostile]), newline=""), strict=True))
    assert [row[0] for row in read[1:]] == [f"'{text}" for text in hostile[:5]] + hostile[5:]
    assert {row[1] for row in read[1:]} == {"1"}


def test_records_are_the_data(folder: Path, dataset: Dataset) -> None:
    for name in open_data.RECORDS:
        records = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))[name]
        assert [record["key"] for record in records] == list(getattr(dataset, name).keys())
    cards = {card["key"]: card for card in json.loads((folder / "gpus.json").read_text(encoding="utf-8"))["gpus"]}
    # The driver's figure of an RTX 4090, MiB, and the number on its box.
    assert cards["rtx-4090"]["memory"] == 24564 * MIB and cards["rtx-4090"]["box"] == 24 * 10**9


def test_estimates_cover_what_the_page_says(folder: Path, dataset: Dataset) -> None:
    rows = rows_of(folder / "estimates.csv")
    combinations = {(row["model"], row["method"], row["sequence_length"], row["micro_batch_size"]) for row in rows}
    assert len(combinations) == len(rows)
    assert {row["model"] for row in rows} == set(dataset.models.keys())
    assert {row["method"] for row in rows} == set(dataset.methods.keys())
    assert len({row["sequence_length"] for row in rows}) > 1 and len({row["micro_batch_size"] for row in rows}) > 1
    full = next(row for row in rows if row["method"] == "full")
    assert full["lora_r"] == "" and full["quantization"] == "", "a key without meaning for the method has no value"
    assert {"verdict_24gb", "verdict_80gb"} <= set(full) and "verdict_128gb" not in full


def test_verdicts_are_those_of_the_smallest_card_of_a_class(folder: Path, dataset: Dataset) -> None:
    assert {box: gpu.key for box, gpu in export.card_classes(dataset.gpus).items()}[24] in ("a10", "a10g")
    rows = [row for row in rows_of(folder / "estimates.csv") if row["sequence_length"] == "2048"][::41]
    classes = export.card_classes(dataset.gpus)
    for row in rows:
        keys = {"model": row["model"], "method": row["method"], "sequence_length": 2048}
        keys["micro_batch_size"] = int(row["micro_batch_size"])
        for box, gpu in classes.items():
            assert row[f"verdict_{box}gb"] == estimate_keys(dataset, {**keys, "gpu": gpu.key}).verdict, (keys, box)


def test_estimates_equal_the_tables_of_the_pages(folder: Path, site: Path) -> None:
    """The table of needs on the page of models: each peak there is one of estimates.csv."""
    rows = rows_of(folder / "estimates.csv")
    wanted = {
        (row["model"], row["method"]): row["peak_bytes"]
        for row in rows
        if row["sequence_length"] == "2048" and row["micro_batch_size"] == "1"
    }
    source = (ROOT / "docs" / "de" / "models.md").read_text(encoding="utf-8")
    call = re.search(r"compare\(model=\[([^]]+)\], method=\[([^]]+)\]\)", source)
    assert call
    models, methods = (re.findall(r'"([^"]+)"', part) for part in call.groups())
    expected = [[wanted[model, method] for method in methods] for model in models]
    for locale in LOCALES:
        page = (site / locale / "models" / "index.html").read_text(encoding="utf-8")
        section = page[page.index('id="need"') :]
        body = section[section.index("<tbody>") : section.index("</tbody>")]
        shown = [re.findall(r'<data class="figure" value="(\d+)"', row) for row in body.split("</tr>")[:-1]]
        assert shown == expected, locale


@pytest.mark.parametrize("locale", LOCALES)
def test_the_page_describes_the_data_for_machines(site: Path, folder: Path, locale: str) -> None:
    page = (site / locale / "open-data" / "index.html").read_text(encoding="utf-8")
    found = re.findall(r'<script type="application/ld\+json">(.*?)</script>', page, re.DOTALL)
    dataset = next(value for value in map(json.loads, found) if value["@type"] == "Dataset")
    # What Google asks of a Dataset: a name, a description of 50 to 5000 characters, and absolute addresses.
    assert dataset["@context"] == "https://schema.org/" and dataset["name"]
    assert 50 <= len(dataset["description"]) <= 5000 and dataset["inLanguage"] == locale
    addresses = [part["contentUrl"] for part in dataset["distribution"]]
    assert all(part["@type"] == "DataDownload" and part["encodingFormat"] for part in dataset["distribution"])
    prefix = "https://vram-guide.example/data/v1/"
    assert sorted(address.removeprefix(prefix) for address in addresses) == sorted(open_data.FILES)
    links = set(re.findall(r'href="\.\./\.\./data/v1/([^"]+)"', page))
    assert links == {file.name for file in folder.iterdir()}


def test_the_example_is_the_same_everywhere_and_short(site: Path) -> None:
    examples = {example(site, locale) for locale in LOCALES}
    assert len(examples) == 1
    (code,) = examples
    assert len(code.strip().splitlines()) <= 11 and "https://vram-guide.example/data/v1/estimator.js" in code


def example(site: Path, locale: str) -> str:
    """The web page that the page of open data shows, as a reader copies it."""
    page = (site / locale / "open-data" / "index.html").read_text(encoding="utf-8")
    block = page[page.index('id="script"') :]
    code = re.search(r"<pre[^>]*>(.*?)</pre>", block, re.DOTALL)
    assert code
    return unescape(re.sub(r"<[^>]+>", "", code[1]))


def test_a_second_export_is_the_same(folder: Path, tmp_path: Path) -> None:
    assert export.main([str(tmp_path / "out")]) == 0
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == {
        file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()
    }


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert export.main([str(tmp_path / "file")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
