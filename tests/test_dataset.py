"""Wrong data is a finding with its exact line, all findings at once; never a traceback, never a figure."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest

from macros import dataset
from macros.findings import DataErrors, Finding

ROOT = Path(__file__).parent.parent

FILES = {
    "sources": """\
a-paper:
  title: A paper
  authors: A. Author
  url: https://example.org/paper
  published: 2021-06
  accessed: 2026-11-30
  kind: paper
a-sheet:
  title: A datasheet
  publisher: A vendor
  url: https://example.org/sheet
  accessed: 2026-11-30
  kind: datasheet
""",
    "models": """\
llama-3.2-1b:
  name: Llama 3.2 1B
  hub: meta-llama/Llama-3.2-1B
  released: 2024-09
  parameters: 1235814400
  config:
    model_type: llama
    hidden_size: 2048
    intermediate_size: 8192
    num_hidden_layers: 16
    num_attention_heads: 32
    num_key_value_heads: 8
    head_dim: 64
    vocab_size: 128256
    max_position_embeddings: 131072
    tie_word_embeddings: true
  sources: {all: a-paper}
  checked: 2026-11-30
""",
    "gpus": """\
rtx-4090:
  name: GeForce RTX 4090
  vendor: nvidia
  segment: consumer
  box_gb: 24
  memory_mib: 24564
  memory_mib_source: driver
  bandwidth_gb_s: 1008
  bf16_tflops: 165.2
  interconnect: PCIe 4.0 x16
  bf16: true
  flash_attention: true
  ecc: none
  mig: false
  display: true
  released: 2022-10
  sources: {all: a-sheet, memory_mib: a-paper}
  checked: 2026-11-30
t4:
  name: Tesla T4
  vendor: nvidia
  segment: datacenter
  box_gb: 16
  memory_mib: 15360
  memory_mib_source: driver
  bandwidth_gb_s: 320
  bf16_tflops: null
  interconnect: PCIe 3.0 x16
  bf16: false
  flash_attention: false
  ecc: "on"
  mig: false
  display: false
  released: 2018-09
  sources: {all: a-sheet}
  checked: 2026-11-30
""",
    "methods": """\
lora:
  name: LoRA
  trains: adapters
  base: frozen
  sources: {all: a-paper}
  checked: 2026-11-30
""",
    "presets": """\
trl:
  name: TRL
  versions: {trl: 1.16.0}
  keys:
    all: {loss: chunked}
  sources: {all: a-paper}
  checked: 2026-11-30
""",
}


def load(root: Path, **files: str) -> dataset.Dataset:
    """A small dataset, with some of its files replaced."""
    (root / "data").mkdir()
    for name, text in {**FILES, **files}.items():
        (root / "data" / f"{name}.yml").write_text(text, encoding="utf-8")
    return dataset.load(root)


def findings(root: Path, **files: str) -> list[str]:
    with pytest.raises(DataErrors) as caught:
        load(root, **files)
    return [str(finding) for finding in caught.value.findings]


def replaced(name: str, old: str, new: str) -> dict[str, str]:
    assert FILES[name].count(old) >= 1, f"{old!r} is not in the sample"
    return {name: FILES[name].replace(old, new, 1)}


def test_the_sample_is_right(tmp_path: Path):
    data = load(tmp_path)
    assert data.gpus["rtx-4090"].memory == 24564 * 2**20
    assert data.gpus["rtx-4090"].box == 24_000_000_000
    assert data.gpus["t4"].bf16_tflops is None
    assert data.gpus["t4"].ecc == "on"
    assert data.models["llama-3.2-1b"].context_length == 131072
    assert list(data.gpus.keys()) == ["rtx-4090", "t4"]
    assert len(data.measurements) == 0


MISTAKES = {
    "text for a number": (
        "gpus", "memory_mib: 24564", "memory_mib: 24 GB",
        "data/gpus.yml:6: rtx-4090.memory_mib: expected a whole number, got '24 GB'",
    ),
    "a decimal for a whole number": (
        "gpus", "memory_mib: 24564", "memory_mib: 24564.0",
        "data/gpus.yml:6: rtx-4090.memory_mib: expected a whole number, got '24564.0'",
    ),
    "a list for a number": (
        "gpus", "memory_mib: 24564", "memory_mib: [24564]",
        "data/gpus.yml:6: rtx-4090.memory_mib: expected a whole number, got a list",
    ),
    "nothing for a number": (
        "gpus", "memory_mib: 24564", "memory_mib:",
        "data/gpus.yml:6: rtx-4090.memory_mib: expected a whole number, got ''",
    ),
    "text for a decimal": (
        "gpus", "bandwidth_gb_s: 1008", "bandwidth_gb_s: 1,008",
        "data/gpus.yml:8: rtx-4090.bandwidth_gb_s: expected a number, got '1,008'",
    ),
    "not a number": (
        "gpus", "bandwidth_gb_s: 1008", "bandwidth_gb_s: nan",
        "data/gpus.yml:8: rtx-4090.bandwidth_gb_s: expected a number, got 'nan'",
    ),
    "YAML's other truths": (
        "gpus", "mig: false", "mig: no",
        "data/gpus.yml:14: rtx-4090.mig: expected true or false, got 'no'",
    ),
    "an unknown key": (
        "gpus", "memory_mib: 24564", "memory_mib: 24564\n  memroy_mib_source: driver",
        "data/gpus.yml:7: rtx-4090.memroy_mib_source: unknown key; did you mean 'memory_mib_source'?",
    ),
    "a missing key": (
        "gpus", "  ecc: none\n", "",
        "data/gpus.yml:1: rtx-4090: missing 'ecc'",
    ),
    "a word that is not in the list": (
        "gpus", "vendor: nvidia", "vendor: nvida",
        "data/gpus.yml:3: rtx-4090.vendor: expected 'nvidia', 'amd' or 'apple', got 'nvida'; did you mean 'nvidia'?",
    ),
    "a duplicate key": (
        "gpus", "t4:\n", "rtx-4090:\n",
        "data/gpus.yml:19: 'rtx-4090' stands here a second time; first in line 1",
    ),
    "a key that cannot be typed": (
        "gpus", "rtx-4090:\n", "RTX 4090:\n",
        "data/gpus.yml:1: RTX 4090: expected a key in lower case like rtx-4090, got 'RTX 4090'",
    ),
    "a record that is no mapping": (
        "methods", FILES["methods"], "lora: LoRA\n",
        "data/methods.yml:1: lora: expected a mapping, got 'LoRA'",
    ),
    "a file that is a list": (
        "methods", FILES["methods"], "- lora\n",
        "data/methods.yml:1: expected records by key, got a list",
    ),
    "no source": (
        "gpus", "sources: {all: a-sheet, memory_mib: a-paper}", "sources: {}",
        "data/gpus.yml:17: rtx-4090.sources: must not be empty",
    ),
    "no sources at all": (
        "gpus", "  sources: {all: a-sheet, memory_mib: a-paper}\n", "",
        "data/gpus.yml:1: rtx-4090: missing 'sources'",
    ),
    "an unknown source": (
        "gpus", "memory_mib: a-paper", "memory_mib: a-papre",
        "data/gpus.yml:17: rtx-4090.sources.memory_mib: data/sources.yml has no 'a-papre'; did you mean 'a-paper'?",
    ),
    "a source for a field that does not exist": (
        "gpus", "memory_mib: a-paper}", "memory: a-paper}",
        "data/gpus.yml:17: rtx-4090.sources.memory: there is no such field; did you mean 'memory_mib'?",
    ),
    "a bad date": (
        "methods", "checked: 2026-11-30", "checked: 2026-13-01",
        "data/methods.yml:6: lora.checked: expected a day like 2026-11-30, got '2026-13-01'",
    ),
    "a date in another style": (
        "methods", "checked: 2026-11-30", "checked: 30.11.2026",
        "data/methods.yml:6: lora.checked: expected a day like 2026-11-30, got '30.11.2026'",
    ),
    "a date in the future": (
        "methods", "checked: 2026-11-30", "checked: 2099-01-01",
        "data/methods.yml:6: lora.checked: 2099-01-01 is in the future",
    ),
    "a month that does not exist": (
        "gpus", "released: 2022-10", "released: 2022-14",
        "data/gpus.yml:16: rtx-4090.released: expected a year, month or day like 2026-11, got '2022-14'",
    ),
    "an absurd size": (
        "gpus", "memory_mib: 24564", "memory_mib: 99999999999",
        "data/gpus.yml:6: rtx-4090.memory_mib: expected at most 4194304, got 99999999999",
    ),
    "a negative size": (
        "gpus", "memory_mib: 24564", "memory_mib: -1",
        "data/gpus.yml:6: rtx-4090.memory_mib: expected at least 512, got -1",
    ),
    "a number with too many digits": (
        "gpus", "memory_mib: 24564", "memory_mib: " + "9" * 5000,
        f"data/gpus.yml:6: rtx-4090.memory_mib: expected a whole number, got '{'9' * 60}…'",
    ),
    "another card's memory": (
        "gpus", "memory_mib: 24564", "memory_mib: 49140",
        "data/gpus.yml:6: rtx-4090.memory_mib: 49140 MiB does not belong to 24 GB on the box",
    ),
    "fields that contradict each other": (
        "gpus", "bf16_tflops: 165.2", "bf16_tflops: null",
        "data/gpus.yml:9: rtx-4090.bf16_tflops: expected a number, because bf16 is true",
    ),
    "markup": (
        "gpus", "name: GeForce RTX 4090", "name: <script>alert(1)</script>",
        "data/gpus.yml:2: rtx-4090.name: expected plain text without '<', got '<script>alert(1)</script>'",
    ),
    "a template": (
        "gpus", "name: GeForce RTX 4090", "name: RTX {{ 7 * 7 }}",
        "data/gpus.yml:2: rtx-4090.name: expected plain text without '{', got 'RTX {{ 7 * 7 }}'",
    ),
    "text that turns round": (
        "gpus", "name: GeForce RTX 4090", "name: \"RTX \\u202e0904\"",
        "data/gpus.yml:2: rtx-4090.name: expected plain text without '\\u202e', got 'RTX \\u202e0904'",
    ),
    "endless text": (
        "gpus", "name: GeForce RTX 4090", "name: " + "x" * 500,
        f"data/gpus.yml:2: rtx-4090.name: expected at most 200 characters without blanks around them, got '{'x' * 60}…'",
    ),
    "an address that runs code": (
        "sources", "url: https://example.org/paper", "url: javascript:alert(1)",
        "data/sources.yml:4: a-paper.url: expected an https:// address, got 'javascript:alert(1)'",
    ),
    "a source that nobody wrote": (
        "sources", "  authors: A. Author\n", "",
        "data/sources.yml:1: a-paper: needs authors or publisher",
    ),
    "a wrong number of parameters": (
        "models", "parameters: 1235814400", "parameters: 1498482688",
        "data/models.yml:5: llama-3.2-1b.parameters: the configuration makes 1235814400 parameters, "
        "published are 1498482688",
    ),
    "a shape that the estimator refuses": (
        "models", "hidden_size: 2048", "hidden_size: many",
        "data/models.yml:8: llama-3.2-1b.config: hidden_size must be a whole number from 1 to 65536, got 'many'",
    ),
    "a hub name that is none": (
        "models", "hub: meta-llama/Llama-3.2-1B", "hub: https://huggingface.co/x",
        "data/models.yml:3: llama-3.2-1b.hub: expected a hub name like Qwen/Qwen3-8B, got 'https://huggingface.co/x'",
    ),
    "a method that does not exist": (
        "presets", "    all: {loss: chunked}", "    dora: {loss: chunked}",
        "data/presets.yml:5: trl.keys.dora: expected 'all', 'full', 'lora' or 'qlora', got 'dora'; "
        "did you mean 'lora'?",
    ),
    "a recipe key that does not exist": (
        "presets", "{loss: chunked}", "{losss: chunked}",
        "data/presets.yml:5: trl.keys.all.losss: unknown recipe key; did you mean 'loss'?",
    ),
    "a recipe that the estimator refuses": (
        "presets", "{loss: chunked}", "{loss: fusd}",
        "data/presets.yml:5: trl.keys.all: loss must be one of standard, chunked, fused, got 'fusd'",
    ),
    "text that is no YAML": (
        "methods", "name: LoRA", "name: [LoRA",
        "data/methods.yml:3: not valid YAML: did not find expected ',' or ']'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", MISTAKES)
def test_a_mistake_is_one_finding_on_its_line(kind: str, tmp_path: Path):
    name, old, new, finding = MISTAKES[kind]
    assert findings(tmp_path, **replaced(name, old, new)) == [finding]


def test_a_family_that_is_not_modelled_is_refused_by_name(tmp_path: Path):
    (finding,) = findings(tmp_path, **replaced("models", "model_type: llama", "model_type: mamba2"))
    assert finding.startswith("data/models.yml:7: llama-3.2-1b.config: model_type 'mamba2' is not modelled; modelled are ")


def test_a_figure_without_a_source(tmp_path: Path):
    text = FILES["gpus"].replace("sources: {all: a-sheet, memory_mib: a-paper}", "sources: {memory_mib: a-paper}")
    assert findings(tmp_path, gpus=text) == [
        f"data/gpus.yml:{line}: rtx-4090.{field} has no source; add it to sources: or sources.all:"
        for line, field in ((5, "box_gb"), (8, "bandwidth_gb_s"), (9, "bf16_tflops"))
    ]


def test_a_missing_file_is_a_finding(tmp_path: Path):
    (tmp_path / "data").mkdir()
    with pytest.raises(DataErrors) as caught:
        dataset.load(tmp_path)
    paths = [str(finding) for finding in caught.value.findings]
    assert paths == [f"data/{name}.yml: cannot be read: No such file or directory" for name in sorted(FILES)]


def test_all_findings_of_all_files_come_at_once(tmp_path: Path):
    gpus = FILES["gpus"].replace("memory_mib: 24564", "memory_mib: much").replace("ecc: none", "ecc: maybe")
    gpus = gpus.replace("all: a-sheet}", "all: gone}")
    methods = FILES["methods"].replace("trains: adapters", "trains: something")
    sources = FILES["sources"].replace("accessed: 2026-11-30", "accessed: yesterday", 1)
    assert findings(tmp_path, gpus=gpus, methods=methods, sources=sources) == [
        "data/gpus.yml:6: rtx-4090.memory_mib: expected a whole number, got 'much'",
        "data/gpus.yml:13: rtx-4090.ecc: expected 'none', 'optional' or 'on', got 'maybe'",
        "data/gpus.yml:35: t4.sources.all: data/sources.yml has no 'gone'",
        "data/methods.yml:3: lora.trains: expected 'all' or 'adapters', got 'something'",
        "data/sources.yml:6: a-paper.accessed: expected a day like 2026-11-30, got 'yesterday'",
    ]


def test_a_faulty_source_is_reported_once_and_not_at_its_users(tmp_path: Path):
    assert findings(tmp_path, **replaced("sources", "kind: datasheet", "kind: sheet")) == [
        "data/sources.yml:13: a-sheet.kind: expected 'paper', 'docs', 'code', 'datasheet', 'measurement' or 'post', "
        "got 'sheet'; did you mean 'datasheet'?"
    ]


def test_today_is_not_in_the_future_anywhere(tmp_path: Path):
    """An author in Auckland writes a date that is tomorrow for a server in California."""
    today = dataset.today()
    load(tmp_path, **replaced("methods", "checked: 2026-11-30", f"checked: {today}"))
    assert today - date.today() in (timedelta(0), timedelta(1))


def test_a_measurement_names_what_exists(tmp_path: Path):
    measurements = """\
a-run:
  model: llama-3.2-2b
  gpu: rtx-4091
  recipe: {method: lora}
  software: {torch: 2.13.0}
  observed: {allocated: 9000000000}
  source: a-sheat
  date: 2026-11
"""
    assert findings(tmp_path, measurements=measurements) == [
        "data/measurements.yml:2: a-run.model: data/models.yml has no 'llama-3.2-2b'; did you mean 'llama-3.2-1b'?",
        "data/measurements.yml:3: a-run.gpu: data/gpus.yml has no 'rtx-4091'; did you mean 'rtx-4090'?",
        "data/measurements.yml:7: a-run.source: data/sources.yml has no 'a-sheat'; did you mean 'a-sheet'?",
    ]


# Collections


@pytest.fixture
def gpus(tmp_path: Path):
    return load(tmp_path).gpus


def test_an_unknown_key_suggests_the_nearest(gpus):
    with pytest.raises(ValueError, match=r"^data/gpus\.yml has no 'rtx-4900'; did you mean 'rtx-4090'\?$"):
        gpus["rtx-4900"]


def keys(records) -> list[str]:
    return [record.key for record in records]


def test_where_compares_and_bounds(gpus):
    assert keys(gpus.where(segment="consumer")) == ["rtx-4090"]
    assert keys(gpus.where(segment=["datacenter", "consumer"])) == ["rtx-4090", "t4"]
    assert keys(gpus.where(memory_at_least=20)) == ["rtx-4090"]
    assert keys(gpus.where(bandwidth_gb_s_at_most=320)) == ["t4"]
    assert keys(gpus.where(bf16=True, released_at_least="2020")) == ["rtx-4090"]


def test_a_record_without_the_field_meets_no_limit(gpus):
    assert keys(gpus.where(bf16_tflops_at_most=1000)) == ["rtx-4090"]


def test_limits_of_memory_are_decimal_gb(gpus):
    """15360 MiB are 16.106 × 10⁹ bytes: more than the 16 on the box."""
    assert keys(gpus.where(memory_at_least=16.1)) == ["rtx-4090", "t4"]
    assert keys(gpus.where(memory_at_least=16.2)) == ["rtx-4090"]


WRONG_CONDITIONS = [
    ({"vram_at_least": 16}, "data/gpus.yml has no field 'vram'; it has key, sources, checked, name"),
    ({"memroy": 16}, "data/gpus.yml has no field 'memroy'; did you mean 'memory'?"),
    ({"segment": "consumr"}, "data/gpus.yml has no record with segment 'consumr'; did you mean 'consumer'?"),
    ({"memory_at_least": "16 GB"}, "memory_at_least: expected a number of GB (10⁹ bytes), got '16 GB'"),
    ({"memory_at_least": True}, "memory_at_least: expected a number of GB (10⁹ bytes), got True"),
    ({"memory_at_least": 17179869184}, "memory_at_least: expected a number of GB (10⁹ bytes), got 17179869184"),
    ({"released_at_least": 2020}, "released_at_least: expected a text, got 2020"),
    ({"bandwidth_gb_s_at_least": "fast"}, "bandwidth_gb_s_at_least: expected a number, got 'fast'"),
]


@pytest.mark.parametrize(("conditions", "message"), WRONG_CONDITIONS)
def test_a_wrong_condition_is_one_sentence(gpus, conditions, message):
    with pytest.raises(ValueError) as caught:
        gpus.where(**conditions)
    assert str(caught.value).startswith(message)


def test_a_finding_reads_path_line_message():
    assert str(Finding("data/gpus.yml", 41, "is wrong")) == "data/gpus.yml:41: is wrong"
    assert str(Finding("data/gpus.yml", 0, "is wrong", warning=True)) == "data/gpus.yml: warning: is wrong"
