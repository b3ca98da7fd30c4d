"""The rows of `data/`: which fields a record has, their types, units and limits (the only file that knows pydantic).

Values arrive as the strings that `yamlfile.py` reads, so nothing is converted by guessing: a whole number is
digits, yes or no is `true` or `false`, and text that could do harm on a page is refused here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args, get_type_hints

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from macros.estimator.architecture import context_of
from macros.findings import quote, suggest

MIB = 2**20
GB = 10**9

# Control characters, invisible and direction-changing ones, and what HTML or Jinja would take for their own.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff<>{}`\\]")
_SLUG = r"[a-z0-9]+(?:[.-][a-z0-9]+)*"
_MONTH = r"20\d\d-(?:0[1-9]|1[0-2])"

Mistake = tuple[tuple[str | int, ...], str]
"""Where in the record (keys and list positions), and what is wrong."""


def scalar(text: str) -> bool | int | float | str | None:
    """A plain YAML scalar by JSON's rules: `true`, `null`, numbers; anything else stays text."""
    words = {"true": True, "false": False, "null": None, "": None}
    if text in words:
        return words[text]
    if re.fullmatch(r"-?(0|[1-9]\d{0,17})", text):
        return int(text)
    if re.fullmatch(r"-?(0|[1-9]\d{0,17})(\.\d{1,20})?([eE][+-]?\d{1,2})?", text):
        return float(text)
    return text


def _plain(value: Any) -> Any:
    """Nested mappings and lists with every scalar converted by `scalar`."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return scalar(value) if isinstance(value, str) else value


def _recipe(value: Any) -> Any:
    """Recipe keys with their values; a version is text although it looks like a number."""
    plain = _plain(value)
    if isinstance(plain, dict) and "transformers" in plain:
        plain["transformers"] = value["transformers"]
    return plain


def _whole(value: Any) -> int:
    if isinstance(value, str) and re.fullmatch(r"-?(0|[1-9]\d{0,17})", value):
        return int(value)
    raise ValueError(f"expected a whole number, got {quote(value)}")


def _number(value: Any) -> float:
    if isinstance(value, str) and re.fullmatch(r"-?(0|[1-9]\d{0,17})(\.\d{1,12})?", value):
        return float(value)
    raise ValueError(f"expected a number, got {quote(value)}")


def _yes_no(value: Any) -> bool:
    if value in ("true", "false"):
        return value == "true"
    raise ValueError(f"expected true or false, got {quote(value)}")


def _null(value: Any) -> Any:
    return None if value == "null" else value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"expected text, got {quote(value)}")
    if value != value.strip() or len(value) > 200:
        raise ValueError(f"expected at most 200 characters without blanks around them, got {quote(value)}")
    if unsafe := _UNSAFE.search(value):
        raise ValueError(f"expected plain text without {unsafe.group()!r}, got {quote(value)}")
    return value


def _matches(pattern: str, wanted: str, longest: int = 80) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if isinstance(value, str) and len(value) <= longest and re.fullmatch(pattern, value):
            return value
        raise ValueError(f"expected {wanted}, got {quote(value)}")

    return check


def _day(value: Any) -> date:
    try:
        if isinstance(value, str) and re.fullmatch(_MONTH + r"-\d\d", value):
            return date.fromisoformat(value)
    except ValueError:
        pass
    raise ValueError(f"expected a day like 2026-11-30, got {quote(value)}")


def _moment(value: Any) -> str:
    if isinstance(value, str) and re.fullmatch(r"(19|20)\d\d", value) or re.fullmatch(_MONTH, str(value)):
        return value
    try:
        return _day(value).isoformat()
    except ValueError:
        raise ValueError(f"expected a year, month or day like 2026-11, got {quote(value)}") from None


Whole = Annotated[int, BeforeValidator(_whole)]
Number = Annotated[float, BeforeValidator(_number)]
YesNo = Annotated[bool, BeforeValidator(_yes_no)]
# What is text here, such as the version 2.0 or the year 2024, an editor reads as a number.
_Typed = WithJsonSchema({"type": ["string", "number"]})
Text = Annotated[str, BeforeValidator(_text), _Typed]
Slug = Annotated[str, BeforeValidator(_matches(_SLUG, "a key in lower case like rtx-4090"))]
Name = Annotated[str, BeforeValidator(_matches(r"[a-z][a-z0-9_]*", "a name in lower case like lora_r"))]
Url = Annotated[str, BeforeValidator(_matches(r"https://[A-Za-z0-9.-]+(/[!-~]*)?", "an https:// address", 500))]
HubName = Annotated[str, BeforeValidator(_matches(r"[\w.-]+/[\w.-]+", "a hub name like Qwen/Qwen3-8B", 120))]
Day = Annotated[date, BeforeValidator(_day)]
Moment = Annotated[str, BeforeValidator(_moment), _Typed]
Values = Annotated[dict[str, Any], BeforeValidator(lambda value: _plain(value))]
RecipeKeys = Annotated[dict[str, Any], BeforeValidator(_recipe)]
MethodKey = Literal["full", "lora", "qlora"]


class Record(BaseModel):
    """One row of a data file; `key` is its name there and in articles."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    derived: ClassVar[tuple[str, ...]] = ()
    """Computed properties that tables and `where` may name like fields."""
    _key: str = PrivateAttr("")

    @property
    def key(self) -> str:
        return self._key

    @classmethod
    def columns(cls) -> tuple[str, ...]:
        """Every name that a table or `where` may ask this kind of record for."""
        return ("key", *cls.model_fields, *cls.derived)

    def figures(self) -> tuple[tuple[str, ...], ...]:
        """Paths of the values that need a source: the numeric fields that are set."""
        return tuple((name,) for name, value in self if type(value) in (int, float))


class Sourced(Record):
    """A record whose figures name the documents they come from."""

    sources: dict[str, Slug] = Field(min_length=1, description="field → key of data/sources.yml; `all` for the rest")
    checked: Day = Field(description="day on which somebody last compared the record with its sources")


class Model(Sourced):
    """A language model: what fixes its shape, and its published number of parameters."""

    name: Text = Field(description="name as its publisher writes it, without the publisher")
    hub: HubName = Field(description="repository on the Hugging Face Hub")
    released: Moment = Field(description="month of publication")
    parameters: Whole = Field(ge=1, le=10**14, description="published count; the estimator's count must equal it")
    config: Values = Field(min_length=1, description="what of config.json decides memory, under its names there")
    omits: tuple[Slug, ...] = Field((), description="parts of the published model that are left out, such as vision")
    history: YesNo = Field(False, description="shown after the current models")

    derived: ClassVar = ("context_length",)

    @property
    def context_length(self) -> int | None:
        """Tokens of context that the published configuration allows, if it says so."""
        return context_of(dict(self.config))

    def figures(self) -> tuple[tuple[str, ...], ...]:
        numbers = (("config", name) for name, value in self.config.items() if type(value) in (int, float))
        return (*super().figures(), *numbers)


class Gpu(Sourced):
    """A graphics card, or a machine whose memory CPU and GPU share, as the verdict and the tables need it."""

    name: Text
    vendor: Literal["nvidia", "amd", "apple"]
    segment: Literal["consumer", "workstation", "datacenter", "unified"]
    box_gb: Whole = Field(ge=1, le=4096, description="the number on the box: a name, not a measurement")
    memory_mib: Whole = Field(ge=512, le=4 * 2**20, description="total that the driver reports, MiB")
    memory_mib_source: Literal["driver", "box"] = Field(description="box: nobody's driver output was found")
    usable_mib: Annotated[Whole | None, BeforeValidator(_null)] = Field(
        None, ge=512, le=4 * 2**20, description="unified memory: what the GPU can use by default, MiB"
    )
    bandwidth_gb_s: Number = Field(ge=1, le=100_000, description="memory bandwidth, 10⁹ bytes per second")
    bf16_tflops: Annotated[Number | None, BeforeValidator(_null)] = Field(
        ge=0.1, le=100_000, description="dense bf16 with fp32 accumulation; null if bf16 does not run natively"
    )
    interconnect: Text
    bf16: YesNo
    flash_attention: YesNo = Field(description="whether FlashAttention-2 runs")
    ecc: Literal["none", "optional", "on"]
    mig: YesNo = Field(description="can be split into instances")
    display: YesNo = Field(description="can drive a display, which costs memory")
    released: Moment

    derived: ClassVar = ("memory", "box")

    @property
    def memory(self) -> int:
        """Bytes that a verdict counts on: what the GPU may use of unified memory, else what the driver reports."""
        return (self.usable_mib or self.memory_mib) * MIB

    @property
    def box(self) -> int:
        """The number on the box in bytes, read as decimal GB."""
        return self.box_gb * GB

    @model_validator(mode="after")
    def _memory_is_near_the_box(self) -> Gpu:
        # Catches a wrong unit; unified machines reserve a part, cards with ECC up to 1/16.
        lowest = 0.5 if self.segment == "unified" else 0.85
        if not lowest <= self.memory_mib / (self.box_gb * 1024) <= 1.05:
            raise ValueError(f"memory_mib: {self.memory_mib} MiB does not belong to {self.box_gb} GB on the box")
        if self.usable_mib and self.usable_mib > self.memory_mib:
            raise ValueError(f"usable_mib: expected at most memory_mib ({self.memory_mib}), got {self.usable_mib}")
        if self.bf16 and self.bf16_tflops is None:
            raise ValueError("bf16_tflops: expected a number, because bf16 is true")
        return self


class Method(Sourced):
    """A way to fine-tune: what is trained, and how the frozen rest is stored."""

    name: Text
    trains: Literal["all", "adapters"] = Field(description="all weights, or low-rank adapters beside them")
    base: Literal["trained", "frozen", "nf4"] = Field(description="what happens to the model's own linear layers")
    released: Annotated[Moment | None, BeforeValidator(_null)] = Field(None, description="month of the first paper")


class Preset(Sourced):
    """The defaults of one training framework, as recipe keys."""

    name: Text
    versions: dict[str, Text] = Field(min_length=1, description="library → version whose defaults these are")
    keys: dict[Literal["all", MethodKey], RecipeKeys] = Field(description="recipe keys for all methods, then per method")

    def defaults(self, method: str) -> dict[str, Any]:
        """Recipe keys for one method: those of `all`, overridden by the method's own."""
        return {**self.keys.get("all", {}), **self.keys.get(method, {})}

    def figures(self) -> tuple[tuple[str, ...], ...]:
        return tuple(("keys", method, name) for method, values in self.keys.items() for name in values)


class Strategy(Sourced):
    """Whether weights stored one way go with a strategy for several GPUs, and what each card then holds of them."""

    storage: Literal["16bit", "nf4_uint8", "nf4_float", "int8"] = Field(
        description="how the model's own weights are stored; nf4_float: bnb_4bit_quant_storage is a floating dtype"
    )
    strategy: Literal["ddp", "zero1", "zero2", "zero3", "fsdp1", "fsdp2"]
    offload: Literal["none", "optimizer", "params"] = Field("none", description="what waits in the host's memory")
    works: Literal["yes", "limited", "no"]
    each_card: Literal["whole", "share", "host"] | None = Field(
        None, description="what of these weights each card keeps; nothing said where it does not work"
    )
    needs: dict[str, Text] = Field({}, description="library → oldest version that the source asks for")
    limit: (
        Literal[
            "integers_left_out",
            "integers_refused",
            "no_merge",
            "offload_needs_more_vram",
            "offload_spares_host_only",
            "offload_untested",
            "paged_8bit_not_saved",
            "same_dtype",
            "whole_while_loading",
        ]
        | None
    ) = Field(None, description="what to know about it")

    derived: ClassVar = ("from_version",)

    @property
    def from_version(self) -> str | None:
        """The oldest versions in a line."""
        return ", ".join(f"{library} {version}" for library, version in self.needs.items()) or None


class Source(Record):
    """A document that figures and sentences cite."""

    title: Text
    authors: Text | None = Field(None, description="persons, the first three and “et al.”")
    publisher: Text | None = None
    url: Url
    published: Moment | None = Field(None, description="when the document appeared, if it says so")
    accessed: Day = Field(description="day on which it was read")
    kind: Literal["paper", "docs", "code", "datasheet", "measurement", "post"]

    @model_validator(mode="after")
    def _says_who_wrote_it(self) -> Source:
        if not self.authors and not self.publisher:
            raise ValueError("needs authors or publisher")
        return self


Reason = Literal[
    "model_not_in_data",
    "model_not_modelled",
    "method_not_modelled",
    "optimizer_not_modelled",
    "quantizer_not_bitsandbytes",
    "parallelism_not_modelled",
    "length_not_exact",
    "no_allocated_counter",
    "no_figure",
]
"""Why a published run is shown but does not count for the error of the tensor peak."""


class Measurement(Record):
    """A run on real hardware: its recipe, its software, what the counters showed and how it ended.

    A run counts for the published error of the tensor peak if the model is in `models.yml`, the estimator knows the
    method and the quantiser, the sequence length is exact and PyTorch's own counter of allocated bytes was read; any
    other says why it does not.
    """

    hub: Text | None = Field(None, description="model as the source names it, if it has no record or another name")
    model: Slug | None = Field(None, description="key of data/models.yml whose shape it has")
    config: Values | None = Field(None, description="shape of a model that is not in data/models.yml")
    recipe: RecipeKeys | None = Field(None, description="recipe keys; none if the estimator cannot express the run")
    gpu: Slug | None = Field(None, description="key of data/gpus.yml, if the source names the card")
    gpus: Whole | None = Field(None, ge=1, description="cards that took part, if there is no recipe to say so")
    software: dict[str, Text] = Field(min_length=1, description="framework, and libraries with their versions")
    outcome: Literal["ok", "oom", "fits"] = Field("ok", description="fits: it ran, and no figure was published")
    observed: dict[Literal["allocated", "reserved", "device", "unstated"], Whole] = Field(
        {}, description="peak in bytes of one card by counter; unstated: the source does not say which counter it read"
    )
    published: Text | None = Field(None, description="the figure as the source has it, with its unit")
    length: Literal["packed", "fixed", "longest_sample", "cap", "cap_reached", "unknown"] = Field(
        "fixed", description="what is known of the sequence length; cap: no sample is longer"
    )
    grade: Literal["A", "B", "C"] = Field("A", description="how completely the source describes the run")
    counts: YesNo = Field(True, description="whether the error of the tensor peak includes this run")
    reason: Reason | None = Field(None, description="why it does not count")
    note: Text | None = Field(None, description="what to know about the figure, such as why it cannot be right as published")
    source: Slug
    date: Moment = Field(description="when the run was made or the source was last changed")

    derived: ClassVar = ("framework", "model_code", "num_gpus")

    @property
    def num_gpus(self) -> int:
        """Cards that took part."""
        return int((self.recipe or {}).get("num_gpus", self.gpus or 1))

    @property
    def framework(self) -> str:
        return self.software["framework"]

    @property
    def model_code(self) -> str:
        """Whose code the layers are: that of Transformers, or the framework's own."""
        return "own" if self.framework in _OWN_MODEL_CODE else "transformers"

    @model_validator(mode="after")
    def _counts_or_says_why_not(self) -> Measurement:
        if self.counts == (self.reason is not None):
            raise ValueError("reason: expected exactly when counts is false")
        if self.counts and not (self.recipe and self.model and "allocated" in self.observed):
            raise ValueError("counts: needs model, recipe and observed.allocated")
        if self.counts and self.length not in EXACT_LENGTHS:
            raise ValueError(f"counts: needs a length that is one of {', '.join(EXACT_LENGTHS)}")
        if self.model and self.config:
            raise ValueError("config: expected only without model")
        if self.recipe and self.gpus:
            raise ValueError("gpus: expected only without recipe, which has num_gpus")
        if not self.model and not self.hub:
            raise ValueError("needs model or hub")
        if self.outcome == "ok" and not self.observed:
            raise ValueError("observed: expected for a run that ended well")
        return self


# Frameworks that do not run Transformers' model classes.
_OWN_MODEL_CODE = ("litgpt", "torchtune")

EXACT_LENGTHS = ("packed", "fixed", "longest_sample")
"""What a source must know about the sequence length for a figure to be compared."""

class Simulation(Record):
    """How far the estimator is from the simulated training step over some runs of it; tests/record_simulation.py writes it."""

    by: Literal["all", "recipe", "setting", "family"] = Field(description="what these runs have in common")
    recipe: RecipeKeys = Field({}, description="the recipe keys in which they agree")
    family: Text | None = Field(None, description="model_type of their config.json")
    runs: Whole = Field(ge=1)
    refused: Whole = Field(0, ge=0, description="runs that the estimator does not model, beside the others")
    median_error: Number = Field(ge=0, description="of the peak, relative")
    p95_error: Number = Field(ge=0, description="not exceeded by 95 % of the runs")
    worst_error: Number = Field(description="the largest, with its sign")
    right_moment: Whole = Field(ge=0, description="runs whose peak lies in the right moment of the step")
    versions: dict[str, Text] = Field(min_length=1, description="library → version that the simulation ran")
    recorded: Day


class Peer(Record):
    """Another tool beside the runs that count; `make compare` writes it."""

    name: Text
    version: Text = Field(description="release, or commit of its repository")
    how: Literal["package", "formula"] = Field(description="package: it ran; formula: restated from its code or page")
    source: Slug
    recorded: Day
    estimates: dict[Slug, Annotated[Whole | None, BeforeValidator(_null)]] = Field(
        min_length=1, description="key of data/measurements.yml → bytes of tensors; null: it cannot express the run"
    )


class Utilisation(Sourced):
    """The share of a card's peak rate that training reaches, as published runs show it, for some cards and methods.

    Counted are the estimator's FLOPs, with recomputation, against dense bf16.
    """

    cards: tuple[Slug, ...] = Field(min_length=1, description="keys of data/gpus.yml: one generation and segment")
    methods: tuple[MethodKey, ...] = Field(min_length=1)
    low: Number = Field(gt=0, le=1, description="of the slowest run that the range rests on, rounded down")
    high: Number = Field(gt=0, le=1, description="of the fastest, rounded up")


class Throughput(Record):
    """A published speed of a run whose recipe is known."""

    gpu: Slug
    model: Slug | None = Field(None, description="key of data/models.yml")
    config: Values | None = Field(None, description="shape of a model that is not in data/models.yml")
    recipe: RecipeKeys = Field(min_length=1, description="recipe keys, the number of GPUs among them")
    tokens_per_second: Number = Field(gt=0, le=10**9, description="of all GPUs together")
    published: Text = Field(description="the figure as its source has it")
    used: Literal["range", "check", "neither"] = Field(
        description="range: data/utilisations.yml rests on it; check: held apart to judge that"
    )
    reason: Text | None = Field(None, description="why it serves neither")
    source: Slug
    date: Moment


KINDS: dict[str, type[Record]] = {
    "sources": Source,
    "models": Model,
    "gpus": Gpu,
    "methods": Method,
    "presets": Preset,
    "measurements": Measurement,
    "simulation": Simulation,
    "peers": Peer,
    "strategies": Strategy,
    "utilisations": Utilisation,
    "throughputs": Throughput,
}
R = TypeVar("R", bound=Record)


def build(kind: type[R], key: str, value: Any) -> tuple[R | None, list[Mistake]]:
    """The record of one key of a data file, or every mistake in it."""
    if not re.fullmatch(_SLUG, key) or len(key) > 80:
        return None, [((), f"expected a key in lower case like rtx-4090, got {quote(key)}")]
    try:
        record = kind.model_validate(value)
    except ValidationError as errors:
        return None, [_mistake(kind, error) for error in errors.errors(include_url=False)]
    record._key = key
    return record, []


def choices(kind: type[Record], field: str) -> tuple[str, ...]:
    """The allowed words of a field that has a closed list of them, else nothing."""
    annotation = kind.model_fields[field].annotation if field in kind.model_fields else None
    return tuple(word for word in get_args(annotation) if isinstance(word, str))


def schemas() -> dict[str, dict[str, Any]]:
    """For each data file a JSON Schema, by which editors complete keys and show their descriptions."""
    return {name: _schema(name, kind) for name, kind in KINDS.items()}


def _schema(name: str, kind: type[Record]) -> dict[str, Any]:
    record = kind.model_json_schema()
    definitions = record.pop("$defs", {})
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"data/{name}.yml",
        "type": "object",
        "additionalProperties": record,
    }
    return {**schema, "$defs": definitions} if definitions else schema


def published(record: Record) -> dict[str, Any]:
    """A record as other programs read it: its key, its fields, and what is computed from them."""
    derived = {name: getattr(record, name) for name in record.derived}
    return {"key": record.key, **record.model_dump(mode="json"), **derived}


def published_schema(name: str) -> dict[str, Any]:
    """The JSON Schema of what `published` returns for a record of one data file."""
    kind = KINDS[name]
    schema = kind.model_json_schema(mode="serialization")
    computed = {}
    for column in kind.derived:
        getter = getattr(kind, column).fget
        described = {"description": first} if (first := (getter.__doc__ or "").partition("\n")[0]) else {}
        computed[column] = {**TypeAdapter(get_type_hints(getter)["return"]).json_schema(), **described}
    key = {"type": "string", "description": "its name in this guide"}
    schema["properties"] = {"key": key, **schema["properties"], **computed}
    schema["required"] = list(schema["properties"])
    return schema


def _mistake(kind: type[Record], error: Mapping[str, Any]) -> Mistake:
    """One of pydantic's errors in our words. Its types: https://docs.pydantic.dev/latest/errors/validation_errors/"""
    place = tuple(part for part in error["loc"] if part != "[key]")
    got, context = error["input"], error.get("ctx", {})
    match error["type"]:
        case "value_error":
            message = str(context["error"])
            field, colon, rest = message.partition(": ")
            # A check over several fields names the one to look at.
            return ((field,), rest) if not place and colon and field in kind.model_fields else (place, message)
        case "missing":
            return place[:-1], f"missing {place[-1]!r}"
        case "extra_forbidden":
            return place, f"unknown key{suggest(place[-1], kind.model_fields)}"
        case "literal_error":
            allowed = str(context["expected"])
            near = suggest(got, re.findall("'([^']*)'", allowed))
            return place, f"expected {allowed}, got {quote(got)}{near}"
        case "greater_than_equal":
            return place, f"expected at least {context['ge']}, got {got}"
        case "less_than_equal":
            return place, f"expected at most {context['le']}, got {got}"
        case "too_short":
            return place, "must not be empty"
        case "model_type" | "model_attributes_type" | "dict_type":
            return place, f"expected a mapping, got {quote(got)}"
        case "tuple_type" | "list_type":
            return place, f"expected a list, got {quote(got)}"
        case _:
            return place, f"{error['msg'][:1].lower()}{error['msg'][1:]}, got {quote(got)}"
