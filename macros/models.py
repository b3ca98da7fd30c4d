"""`python -m macros models add config.json --key KEY --source KEY`: a model's record out of its published configuration.

The record keeps the keys of config.json that decide memory, counts the parameters, and stands behind the other models
of its publisher. With a folder that also holds model.safetensors.index.json the count is compared with the size of the
published weights. What the files do not say is asked for; nothing is guessed that a reader would take for a fact.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from macros import check, yamlfile
from macros.datafile import load_with, replace, start_of
from macros.dataset import load, today
from macros.estimator import Architecture, architecture_from_config, parameter_count
from macros.findings import DataErrors, Finding, quote, suggest
from macros.options import Parser

ROOT = Path(__file__).parent.parent
PATH = "data/models.yml"
INDEX = "model.safetensors.index.json"
_WIDTH = 118
# Layers that predict several tokens ahead: published with the model, and not loaded for fine-tuning.
_AHEAD = ("mtp_num_hidden_layers", "num_nextn_predict_layers")
_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}


class _Watched(dict[str, Any]):
    """A configuration that remembers which of its keys were asked for."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.asked: set[Any] = set()

    def get(self, key: Any, default: Any = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)

    def __getitem__(self, key: Any) -> Any:
        self.asked.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.asked.add(key)
        return super().__contains__(key)


@dataclass(frozen=True)
class Added:
    """What became of a configuration: the file's new text, and what a maintainer should know of the record."""

    text: str
    record: str
    remarks: tuple[str, ...]


def shape(published: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The part of a config.json that decides memory, in its order, and the parts of the model that it leaves out.

    Raises `ValueError`, one sentence, for a family or a value that the estimator does not model.
    """
    whole = architecture_from_config(dict(published))
    inner = published.get("text_config")
    flat = dict(published) if not isinstance(inner, Mapping) else {**_shared(published), **inner}
    flat["model_type"] = whole.model_type
    watched = _Watched(flat)
    architecture = architecture_from_config(watched)
    kept = {key: value for key, value in flat.items() if key in watched.asked}
    for key in [key for key, value in kept.items() if not _says_something(value)]:
        if _same({name: value for name, value in kept.items() if name != key}, architecture):
            del kept[key]
    context = {key: flat[key] for key in ("max_position_embeddings",) if flat.get(key) is not None}
    ahead = ("mtp",) if any(flat.get(key) for key in _AHEAD) else ()
    return {"model_type": kept.pop("model_type"), **kept, **context}, (*whole.omitted, *ahead)


def _shared(published: Mapping[str, Any]) -> dict[str, Any]:
    """What a multimodal configuration says outside of text_config about the text model."""
    return {key: published[key] for key in ("tie_word_embeddings", "model_type") if key in published}


def _says_something(value: Any) -> bool:
    """Whether a value is worth a place in the record although the estimator would assume the same."""
    return type(value) in (int, float, str) or value is True


def _same(config: dict[str, Any], wanted: Architecture) -> bool:
    try:
        return architecture_from_config(config) == wanted
    except ValueError:
        return False


def published_size(folder: Path, config: Mapping[str, Any], parameters: int, omits: Sequence[str]) -> str:
    """How the count agrees with the weights that the index of a folder lists, as a sentence.

    Raises `DataErrors` if they differ and nothing that is left out explains it.
    """
    index = _json(folder / INDEX)
    facts = index.get("metadata") or {}
    names = index.get("weight_map") or {}
    size = facts.get("total_size")
    dtype = config.get("torch_dtype") or config.get("dtype") or (config.get("text_config") or {}).get("dtype")
    if config.get("quantization_config"):
        return f"{INDEX} was not compared: the published weights are quantized"
    if not isinstance(size, int) or dtype not in _BYTES:
        return f"{INDEX} was not compared: total_size is {quote(size)} and the dtype {quote(dtype)}"
    expected = parameters * _BYTES[dtype]
    # Older Llama files hold a table per layer that is no parameter: half a head, in float32 or in the weights' dtype.
    tables = sum(str(name).endswith("rotary_emb.inv_freq") for name in names)
    head = config.get("head_dim") or config.get("hidden_size", 0) // (config.get("num_attention_heads") or 1)
    if size - expected in {tables * (head // 2) * width for width in (4, _BYTES[dtype])} | {0}:
        return f"{size} bytes in {INDEX} are the {parameters} parameters in {dtype}"
    if omits and size > expected:
        rest = size - expected
        return f"{rest} of the {size} bytes in {INDEX} belong to what is left out ({', '.join(omits)}) or were not explained"
    says = f"metadata.total_size: {parameters} parameters in {dtype} make {expected} bytes, the index says {size}"
    raise DataErrors([Finding(str(folder / INDEX), 0, says)])


def _json(file: Path) -> dict[str, Any]:
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataErrors([Finding(str(file), 0, f"cannot be read: {error.strerror}")]) from None
    except ValueError as error:
        raise DataErrors([Finding(str(file), 0, f"not JSON: {error}")]) from None
    if not isinstance(value, dict):
        raise DataErrors([Finding(str(file), 0, f"expected an object, got {quote(value)}")])
    return value


def add(
    path: Path, key: str, sources: Mapping[str, str], given: Mapping[str, str], history: bool = False, root: Path = ROOT
) -> Added:
    """The text of data/models.yml with the record of a configuration; nothing is written.

    `given` holds name, hub and released as far as they were typed. Raises `DataErrors` with everything that is wrong.
    """
    file = path / "config.json" if path.is_dir() else path
    published = _json(file)
    dataset = load(root)
    try:
        config, omits = shape(published)
        parameters = parameter_count(architecture_from_config(config))
    except ValueError as error:
        raise DataErrors([Finding(str(file), 0, str(error))]) from None
    facts, remarks = _facts(path, published, sources, given, dataset)
    findings = [
        Finding(str(file), 0, f"does not say {what}; add {option}") for name, what, option in _NEEDED if not facts.get(name)
    ]
    for source in sources.values():
        if source not in dataset.sources:
            findings.append(Finding("data/sources.yml", 0, f"has no {quote(source)}{suggest(source, dataset.sources.keys())}"))
    if key in dataset.models:
        line = dataset.documents["models"].line(key)
        findings.append(Finding(PATH, line, f"has {quote(key)} already; another model needs another key"))
    if findings:
        raise DataErrors(findings)
    if path.is_dir() and (path / INDEX).exists():
        remarks.append(published_size(path, published, parameters, omits))
    else:
        remarks.append(f"the count of {parameters} was compared with nothing: give a folder with {INDEX}, or look it up")
    everything = {**published, **(published.get("text_config") or {})}
    if left := sorted(name for name in everything if name not in config and name not in _KNOWN_IDLE):
        remarks.append(f"left out of config.json, because memory does not depend on it: {', '.join(left)}")
    record = _written(key, facts, parameters, config, omits, history, sources)
    text = _inserted((root / PATH).read_text(encoding="utf-8"), facts["hub"], record, history)
    load_with(root, PATH, text, shown=PATH)
    return Added(text, record, tuple(remarks))


# What a record needs beside the shape: field, what it is, how to give it.
_NEEDED = (
    ("name", "the model's name", '--name "Qwen3 8B"'),
    ("hub", "its repository on the hub", "--hub Qwen/Qwen3-8B"),
    ("released", "when it was published", "--released 2026-04"),
)
# Keys that every config.json has and nobody misses in the record.
_KNOWN_IDLE = (
    "architectures",
    "transformers_version",
    "_name_or_path",
    "torch_dtype",
    "dtype",
    "text_config",
    "vision_config",
    "audio_config",
)


def _facts(
    path: Path, published: Mapping[str, Any], sources: Mapping[str, str], given: Mapping[str, str], dataset: Any
) -> tuple[dict[str, str], list[str]]:
    """Name, hub and month, each with a remark where it comes from if nobody typed it."""
    facts, remarks = dict(given), []
    named = str(published.get("_name_or_path", ""))
    in_cache = re.search(r"models--([\w.-]+?)--([\w.-]+)", path.absolute().as_posix())
    if "hub" not in facts and in_cache:
        facts["hub"] = f"{in_cache[1]}/{in_cache[2]}"
        remarks.append(f"hub {facts['hub']}: from the folder's name in the hub's cache")
    elif "hub" not in facts and re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", named):
        facts["hub"] = named
        remarks.append(f"hub {named}: from _name_or_path, which in a copy may name the original")
    if "name" not in facts and "hub" in facts:
        facts["name"] = facts["hub"].partition("/")[2].replace("-", " ").replace("_", " ")
        remarks.append(f"name {facts['name']}: from the hub's; write it as the publisher does")
    source = sources.get("all", "")
    if "released" not in facts and source in dataset.sources:
        appeared = dataset.sources[source].published or ""
        if len(appeared) >= 7 and f"huggingface.co/{facts.get('hub')}/" in dataset.sources[source].url + "/":
            facts["released"] = appeared[:7]
            remarks.append(f"released {facts['released']}: when {source} appeared")
    return facts, remarks


def _written(
    key: str, facts: Mapping[str, str], parameters: int, config: Mapping[str, Any], omits: Sequence[str], history: bool,
    sources: Mapping[str, str],
) -> str:
    """The record as it stands in the file."""
    lines = [f"{key}:", f"  name: {_scalar(facts['name'])}", f"  hub: {facts['hub']}", f"  released: {facts['released']}"]
    lines += [f"  parameters: {parameters}", *_flow("config", {name: _value(value) for name, value in config.items()})]
    if omits:
        lines.append(f"  omits: [{', '.join(omits)}]")
    if history:
        lines.append("  history: true")
    return "\n".join([*lines, *_flow("sources", sources), f"  checked: {today()}"]) + "\n"


def _flow(name: str, values: Mapping[str, str]) -> list[str]:
    """A mapping in braces, broken where the line is full, as the file has it."""
    lines, indent = [f"  {name}: {{"], " " * (len(name) + 5)
    for number, (key, value) in enumerate(values.items()):
        item = f"{key}: {value}" + ("}" if number == len(values) - 1 else ",")
        if len(lines[-1]) + len(item) + 1 > _WIDTH:
            lines.append(indent + item)
        else:
            lines[-1] += item if lines[-1].endswith("{") else f" {item}"
    return lines


def _value(value: Any) -> str:
    """A value of config.json in YAML's flow style."""
    if isinstance(value, list):
        return "[" + ", ".join(_value(part) for part in value) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_value(part)}" for key, part in value.items()) + "}"
    return _scalar(value) if isinstance(value, str) else json.dumps(value)


def _scalar(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z][\w. /+-]*", text) else json.dumps(text, ensure_ascii=False)


def _inserted(text: str, hub: str, record: str, history: bool) -> str:
    """The file with one more record: behind the last one of its publisher, else under a heading before the old models."""
    document = yamlfile.parse(text, PATH)
    records = document.value or {}
    lines = text.splitlines(keepends=True)
    publisher = hub.partition("/")[0]
    keys = list(records)
    old = [key for key in keys if records[key].get("history") == "true"]
    beside = [key for key in keys if records[key]["hub"].partition("/")[0] == publisher and (key in old) == history]
    if history and not beside:
        return f"{text.rstrip()}\n\n{record}"
    if beside:
        place = keys.index(beside[-1]) + 1
        start = start_of(lines, document.line(keys[place])) if place < len(keys) else len(lines)
        block = record
    else:
        start = start_of(lines, document.line(old[0])) if old else len(lines)
        block = f"# {publisher}\n{record}"
    before, after = "".join(lines[:start]).rstrip("\n"), "".join(lines[start:])
    return f"{before}\n\n{block}" + (f"\n{after}" if after else "")


def main(arguments: Sequence[str]) -> int:
    """The command. Returns the exit code; findings go to standard error."""
    parser = Parser(prog="python -m macros models", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    adding = commands.add_parser("add", help=f"write the record of a model into {PATH}")
    adding.add_argument("path", type=Path, metavar="PATH", help="a config.json, or a folder with it and the weights' index")
    adding.add_argument("--key", required=True, help="the model's name in data and articles, such as qwen3-8b")
    adding.add_argument(
        "--source", required=True, action="append", metavar="[FIELD=]KEY", help="a key of data/sources.yml, for all or one field"
    )
    for name, what, example in _NEEDED:
        adding.add_argument(f"--{name}", help=f"{what}: {example}")
    adding.add_argument("--history", action="store_true", help="only to explain older figures")
    options = parser.parse_args(arguments)
    sources = {}
    for typed in options.source:
        field, equals, key = typed.partition("=")
        sources[field if equals else "all"] = key if equals else typed
    given = {name: value for name, _, _ in _NEEDED if (value := getattr(options, name)) is not None}
    try:
        added = add(options.path, options.key, sources, given, options.history)
    except DataErrors as errors:
        print(errors, file=sys.stderr)
        return 1
    replace(ROOT / PATH, added.text)
    print(added.record)
    for remark in added.remarks:
        print(f"- {remark}")
    print("- to do: let Transformers count it too (tests/record_parameters.py), and read the record once more\n")
    return check.main([])
