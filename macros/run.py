"""One estimate as an article reads it: bytes, shares and ratios by name, ready for filters and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from macros.amounts import Amounts, DiskRow, EventRow, HostRow
from macros.estimator import PARTS, Beside, Estimate, Rate, questions_from_keys
from macros.estimator.advice import Advice
from macros.estimator.capacity import Bound
from macros.estimator.recipe import MASTER_KEYS, Recipe, applicable_keys
from macros.findings import suggest
from macros.records import Gpu, Model, Preset

# What does not depend on the batch: bytes per parameter.
STATE = ("weights", "adapters", "gradients", "optimizer_states", "master_weights")
_OF_TRAINABLE = ("adapters", "gradients", "optimizer_states", "master_weights")
_OCCASIONS = ("load", "load_by_each", "training", "save", "resume", "merge")
_PURPOSES = ("download", "checkpoints", "merged", "dataset")
_OF_CARD = ("verdict", "headroom", "memory", "tokens_per_second", "duration", "cost")
_FIGURES = (
    "peak",
    "per_gpu",
    "all_gpus",
    "device",
    "reserved",
    "verdict",
    "headroom",
    "memory",
    "parameters",
    "trainable_parameters",
    "trainable_share",
    "moment",
    "evidence",
    "tokens_per_second",
    "duration",
    "cost",
    "host_peak",
    "download",
    "checkpoint",
    "disk_total",
    "communication",
    "weights_bytes_per_parameter",
    "total_bytes_per_parameter",
)
# Columns with the largest value of a key that fits.
BOUNDS = (
    "longest_sequence",
    "longest_sequence_tight",
    "largest_batch",
    "largest_batch_tight",
    "largest_rank",
    "largest_rank_tight",
    "smallest_number",
    "smallest_number_tight",
)


def either(name: object, known: Iterable[str], has: str = "it has") -> str:
    """The end of a message about a wrong name: the nearest right one, else all of them."""
    known = list(known)
    return suggest(name, known) or f"; {has} {', '.join(known)}"


@dataclass(frozen=True)
class PartRow:
    """One part of a run's memory; `part` is empty in the row of the sum."""

    part: str
    method: str
    total: int
    share: Fraction
    bytes_per_parameter: Fraction
    count: int
    """Parameters that the part grows with: the trainable ones, or all."""

    COLUMNS = ("part", "formula", "bytes_per_parameter", "total", "share", "source")


@dataclass(frozen=True)
class MomentRow:
    """One moment of a training step and its sum."""

    step: str
    total: int
    share: Fraction

    COLUMNS = ("step", "total", "share")


@dataclass(frozen=True)
class MeasureRow:
    """A run after one measure, which is applied after those before it; the first row is the run as it is."""

    run: Run
    """As it is, before any measure."""
    measure: str
    changes: Mapping[str, Any]
    saving: int | None
    alone: int | None
    peak: int
    verdict: str | None

    COLUMNS = ("measure", "price", "saving", "alone", "peak", "verdict")

    @property
    def price(self) -> str | None:
        """What the measure costs, by its name."""
        return self.measure or None


class Run:
    """A recipe, its estimate, and the records that it names."""

    def __init__(
        self,
        estimate: Estimate,
        keys: Mapping[str, Any],
        model: Model | None,
        gpu: Gpu | None,
        preset: Preset | None,
        bounds: Callable[[str], Bound | None],
    ) -> None:
        """`bounds` works out how far a key can go on the card."""
        self._bounds = bounds
        self.estimate, self.keys, self.model, self.gpu, self.preset = estimate, dict(keys), model, gpu, preset
        named = {name: keys[name] for name in ("model", "gpu", "preset") if name in keys}
        idle = idle_keys(estimate.conditions)
        self.recipe: dict[str, Any] = {
            name: None if name in idle else value for name, value in (estimate.conditions | named).items()
        }

    def __repr__(self) -> str:
        return "a run of " + ", ".join(f"{name}={value!r}" for name, value in self.keys.items())

    @property
    def name(self) -> str:
        return self.model.name if self.model else str(self.recipe.get("model_type", "config"))

    @property
    def conditions(self) -> dict[str, Any]:
        return self.recipe

    @property
    def peak(self) -> int:
        return self.estimate.peak_bytes

    @property
    def per_gpu(self) -> int:
        """The peak, by the name that says whose it is: of one GPU."""
        return self.estimate.per_gpu_bytes

    @property
    def total(self) -> int:
        """Bytes of all GPUs together."""
        return self.estimate.total_bytes

    @property
    def all_gpus(self) -> int:
        """The total, as a column's name."""
        return self.total

    @property
    def moment(self) -> str:
        return self.estimate.moment

    @property
    def reserved(self) -> Any:
        return self.estimate.reserved_bytes

    @property
    def device(self) -> Any:
        return self.estimate.device_bytes

    @property
    def parameters(self) -> int:
        return self.estimate.parameters

    @property
    def trainable_parameters(self) -> int:
        return self.estimate.trainable_parameters

    @property
    def trainable_share(self) -> Fraction:
        """Trainable parameters, adapters included, over all parameters of the model."""
        return Fraction(self.trainable_parameters, self.parameters)

    @property
    def verdict(self) -> str | None:
        return self.estimate.verdict

    @property
    def headroom(self) -> int | None:
        return self.estimate.headroom_bytes

    @property
    def memory(self) -> int | None:
        """Bytes that the run's card offers."""
        return self.gpu.memory if self.gpu else None

    @property
    def evidence(self) -> str:
        return self.estimate.evidence

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(self.estimate.warnings)

    def part(self, name: str, moment: str | None = None) -> int:
        """Bytes of one part at the peak, or at another moment; 0 where it does not live then."""
        if name not in PARTS:
            raise ValueError(f"there is no part {name!r}{either(name, PARTS, 'parts are')}")
        return self._at(moment).parts.get(name, 0)

    @property
    def parts(self) -> list[PartRow]:
        """The parts at the peak, largest part of what stays first, and their sum."""
        return self.parts_at(None)

    def parts_at(self, moment: str | None) -> list[PartRow]:
        parts = self._at(moment).parts
        return self._rows({name: parts[name] for name in PARTS if parts.get(name)})

    @property
    def state(self) -> list[PartRow]:
        """Weights, gradients, optimizer states and copies, each at its largest, and their sum: bytes per parameter.

        They need not all live at the peak: gradients may be gone when the loss is computed.
        """
        return self._rows({name: size for name in STATE if (size := self._largest(name))})

    @property
    def moments(self) -> list[MomentRow]:
        """Every moment of the step with its sum."""
        peak = self.peak
        return [
            MomentRow(name, moment.total, Fraction(moment.total, peak))
            for name, moment in self.estimate.moments.items()
        ]

    def bytes_per_parameter(self, name: str) -> Fraction:
        """Bytes of a part, at its largest, per parameter of the model."""
        self.part(name)
        return Fraction(self._largest(name), self.parameters)

    @property
    def weights_bytes_per_parameter(self) -> Fraction:
        return self.bytes_per_parameter("weights")

    @property
    def total_bytes_per_parameter(self) -> Fraction:
        """Bytes per parameter of weights, gradients, optimizer states and copies in sum."""
        return Fraction(sum(self._largest(name) for name in STATE), self.parameters)

    @property
    def events(self) -> Amounts:
        """Peaks of the card outside the step: `run.events.evaluation`, or rows for a table."""
        sizes = self._beside.events
        rows = (EventRow(self, size, name, Fraction(size, self.peak), size > self.peak) for name, size in sizes.items())
        return Amounts(sizes, rows)

    def kept_logits(self, tokens: int) -> int:
        """Bytes of logits that stay on the card while so many tokens are evaluated with compute_metrics."""
        if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1:
            raise ValueError(f"kept_logits takes a whole number of tokens, at least 1, got {tokens!r}")
        return self._beside.kept_logits * tokens

    @property
    def host(self) -> Amounts:
        """The host's memory by occasion: `run.host.peak`, or rows for a table."""
        sizes = self._beside.host
        return Amounts(sizes, (HostRow(self, sizes[name], name) for name in _OCCASIONS if name in sizes))

    @property
    def disk(self) -> Amounts:
        """Disk space by purpose: `run.disk.checkpoint`, or rows for a table that add up to the last one."""
        sizes = self._beside.disk
        rows = [DiskRow(self, sizes[name], name) for name in _PURPOSES if sizes[name]]
        return Amounts(sizes, [*rows, DiskRow(self, sizes["total"], "")])

    @property
    def _beside(self) -> Beside:
        found = self.estimate.beside
        if found is None:
            raise ValueError("this run has its step alone; estimate_keys works out the rest")
        return found

    @property
    def checkpoints_kept(self) -> int:
        """Checkpoints that stay on disk."""
        return int(questions_from_keys(self.keys)["checkpoints_kept"])

    @property
    def host_peak(self) -> int:
        return self.host.peak

    @property
    def download(self) -> int:
        return self.disk.download

    @property
    def checkpoint(self) -> int:
        return self.disk.checkpoint

    @property
    def disk_total(self) -> int:
        return self.disk.total

    # How far it can be stretched on its card, one key at a time; 0 where even the smallest value does not fit

    @property
    def longest_sequence(self) -> int:
        """Tokens of the longest sequence that fits comfortably, in steps of 128, up to what the model is made for."""
        return self._bound("longest_sequence").comfortable

    @property
    def longest_sequence_tight(self) -> int:
        """The same, fitting at all."""
        return self._bound("longest_sequence").tight

    @property
    def largest_batch(self) -> int:
        """The largest micro-batch that fits comfortably."""
        return self._bound("largest_batch").comfortable

    @property
    def largest_batch_tight(self) -> int:
        """The same, fitting at all."""
        return self._bound("largest_batch").tight

    @property
    def largest_rank(self) -> int:
        """The largest power of two as the adapters' rank that fits comfortably."""
        return self._bound("largest_rank").comfortable

    @property
    def largest_rank_tight(self) -> int:
        """The same, fitting at all."""
        return self._bound("largest_rank").tight

    @property
    def smallest_number(self) -> int:
        """How many of the card are enough for the run to fit comfortably, sharded as the recipe says, else with FSDP."""
        return self._bound("smallest_number").comfortable

    @property
    def smallest_number_tight(self) -> int:
        """The same, fitting at all."""
        return self._bound("smallest_number").tight

    def _bound(self, name: str) -> Bound:
        if self.gpu is None:
            raise ValueError(f'without a card there is no {name}; give the run a gpu, such as gpu="rtx-4090"')
        if (found := self._bounds(name)) is None:
            raise ValueError(f"there is no {name} in method {self.recipe['method']}, which trains no adapters")
        return found

    @property
    def communication(self) -> int:
        """Bytes that each card sends, and receives, for one optimizer step."""
        return self.estimate.communication_bytes

    # Time

    @property
    def tokens_per_second(self) -> Rate | None:
        """Of all GPUs together; None where no published run is like this one."""
        return self.estimate.tokens_per_second

    @property
    def duration(self) -> Rate | None:
        """Seconds for the data set that the run names (dataset_tokens, epochs)."""
        hours = self.estimate.hours
        if hours is None and self.tokens_per_second is not None:
            raise ValueError("a duration needs dataset_tokens, such as dataset_tokens=50_000_000")
        return Rate(hours.low * 3600, hours.high * 3600) if hours else None

    @property
    def cost(self) -> Rate | None:
        """Cost of that time, in the money of price_per_hour, the price of one GPU."""
        if self.estimate.cost is None and self.duration is not None:
            raise ValueError("a cost needs price_per_hour, your own price of one GPU")
        return self.estimate.cost

    # For tables

    @property
    def columns(self) -> tuple[str, ...]:
        """Every name that a table may ask a run for."""
        named = ("model", "gpu", "method", "preset")
        recipe = tuple(name for name in self.recipe if name not in (*named, "model_type"))
        return (*named, *recipe, *_FIGURES, *BOUNDS, *PARTS)

    def value(self, column: str) -> Any:
        """The value of a column: a record, a recipe value, a figure, or bytes of a part at the peak."""
        if column in ("model", "gpu", "preset"):
            return getattr(self, column)
        if column in _OF_CARD and self.gpu is None:
            raise ValueError(f'without a card there is no {column}; give the run a gpu, such as gpu="rtx-4090"')
        if column in BOUNDS:
            return getattr(self, column) or None
        if column in _FIGURES:
            return getattr(self, column)
        if column in PARTS:
            return self.part(column)
        if column in self.recipe:
            return self.recipe[column]
        raise ValueError(f"a run has no column {column!r}{either(column, self.columns)}")

    def _at(self, moment: str | None) -> Any:
        moments = self.estimate.moments
        name = moment or self.estimate.moment
        if name not in moments:
            raise ValueError(f"this run has no moment {name!r}{either(name, moments)}")
        return moments[name]

    def _largest(self, name: str) -> int:
        return max(moment.parts.get(name, 0) for moment in self.estimate.moments.values())

    def _rows(self, sizes: Mapping[str, int]) -> list[PartRow]:
        total = sum(sizes.values())
        method = str(self.recipe.get("method"))
        rows = [
            PartRow(
                part=name,
                method=method,
                total=size,
                share=Fraction(size, total) if total else Fraction(0),
                bytes_per_parameter=Fraction(size, self.parameters),
                count=self.trainable_parameters if name in _OF_TRAINABLE else self.parameters,
            )
            for name, size in sizes.items()
        ]
        return [*rows, PartRow("", method, total, Fraction(1), Fraction(total, self.parameters), self.parameters)]


def idle_keys(conditions: Mapping[str, Any]) -> set[str]:
    """Recipe keys that say nothing about this run, such as a LoRA rank in full fine-tuning."""
    idle = {field.name for field in fields(Recipe)} - set(applicable_keys(conditions["method"]))
    if conditions["precision"] != "bf16-master":
        idle.update(MASTER_KEYS)
    if conditions["parallelism"] != "fsdp":
        idle.add("fsdp_version")
    if conditions["objective"] == "sft":
        idle.add("reference")
    if conditions["objective"] == "grpo":
        idle.add("trained_token_share")
    else:
        idle.update(("num_generations", "prompt_length", "generation"))
    if conditions["generation"] != "vllm":
        idle.add("vllm_memory_share")
    return idle


def runs_of(value: object, word: str) -> list[Run]:
    """One run or several as a list. Raises `ValueError` for anything else, naming the word that was given it."""
    if isinstance(value, Run):
        return [value]
    if isinstance(value, Iterable) and not isinstance(value, (str, Mapping)):
        runs = list(value)
        if runs and all(isinstance(run, Run) for run in runs):
            return runs
    raise ValueError(f"{word} takes a run or runs, made by estimate(…), compare(…) or fits(…)")


def measure_rows(run: Run, advised: Advice) -> list[MeasureRow]:
    """A run as it is, and after each of the measures."""
    first = MeasureRow(run, "", {}, None, None, advised.peak_bytes, advised.verdict)
    return [first] + [
        MeasureRow(run, each.name, each.changes, each.saving_bytes, each.alone_bytes, each.peak_bytes, each.verdict)
        for each in advised.measures
    ]
