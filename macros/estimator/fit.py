"""From the bytes of each moment to an answer: the peak, what the driver may show, and whether a card is large enough."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from .architecture import Architecture
from .beside import Beside
from .cards import communication_bytes
from .compute import flops_per_step
from .events import start_bytes
from .evidence import evidence_for
from .memory import Moment, moments, profile
from .parameters import parameter_count
from .phases import cache_bytes, log_probs_flops, with_phases
from .ranges import Range, device_range, reserved_range, stream_slack
from .recipe import Recipe
from .speed import Rate, cost, hours, tokens_per_second

# "Fits comfortably" needs the tensors to stay below this share of the card: Fujii et al. 2024 saw no failure below
# it in pre-training on A100 and H100.
COMFORTABLE_PERCENT = 80

# The limits of single keys multiply to more than this. No card comes near it, and a hundred times as much, which the
# verdict computes, is still below 2^53.
MOST_BYTES = 2**46
MOST_IN_SUM = 2**52


@dataclass(frozen=True, slots=True)
class Estimate:
    """One recipe, on each of its GPUs alike.

    per_gpu_bytes    peak_bytes, by the name that says whose it is
    total_bytes      of all GPUs together
    peak_bytes       what torch.cuda.max_memory_allocated would report, without cuBLAS workspace
    moment           the name of the moment that sets it
    reserved_bytes   what torch.cuda.max_memory_reserved may report
    device_bytes     what nvidia-smi may show for the process
    flops_per_step   floating-point operations of one optimizer step on one card, without generation
    communication_bytes   what each card sends, and receives, for one optimizer step
    tokens_per_second   of all cards together; None without a card or without published runs like this one
    hours, cost      of the data set that somebody asked about, at their price; None where nobody asked
    evidence         "oracle", "measured" or "arithmetic"
    warnings         keys of messages about what is not modelled
    beside           what the run needs outside its step; None where only the step was asked for
    verdict          "comfortable", "tight", "does_not_fit" of step and start; None without a card
    headroom_bytes   the card's memory less the upper device figure, or less the lower one unless comfortable
    """

    peak_bytes: int
    per_gpu_bytes: int
    total_bytes: int
    moment: str
    moments: dict[str, Moment]
    reserved_bytes: Range
    device_bytes: Range
    parameters: int
    trainable_parameters: int
    flops_per_step: float
    communication_bytes: int
    conditions: dict[str, object]
    evidence: str
    warnings: tuple[str, ...]
    verdict: str | None
    headroom_bytes: int | None
    beside: Beside | None = None
    tokens_per_second: Rate | None = None
    hours: Rate | None = None
    cost: Rate | None = None


def estimate(arch: Architecture, recipe: Recipe, memory_bytes: int | None = None) -> Estimate:
    """Peak, moments, ranges and, given a card's memory in bytes, the verdict.

    Raises ValueError if a recipe needs more memory than any machine has.
    """
    shared = profile(arch, recipe)
    by_moment = with_phases(arch, recipe, moments(arch, recipe, shared))
    peak, moment = 0, ""
    for name in by_moment:
        if by_moment[name].total > peak:
            peak, moment = by_moment[name].total, name
    if peak > MOST_BYTES or peak > MOST_IN_SUM // recipe.num_gpus:
        limit = f"more than {MOST_BYTES // 10**12} TB on one GPU"
        raise ValueError(f"micro_batch_size, sequence_length or the sizes in the config are a typing mistake: {limit}")
    step = by_moment["optimizer_step"].parts
    streams = 0
    if recipe.num_gpus > 1 and recipe.parallelism != "ddp":
        gathered = max(moment.parts.get("gathered_shards", 0) for moment in by_moment.values())
        streams = stream_slack(gathered, shared.flight, step.get("gradients", 0))
    reserved = reserved_range(peak, by_moment["loss"].parts, step, streams)
    device = device_range(reserved, recipe.num_gpus)
    verdict, headroom = None, None
    if memory_bytes is not None:
        largest, shown = with_start(peak, device, start_bytes(arch, recipe))
        room = memory_bytes - vllm_bytes(recipe, memory_bytes)
        verdict = verdict_for(largest, shown, room, recipe)
        if vllm_bytes(recipe, memory_bytes) < vllm_needs(arch, recipe):
            verdict = "does_not_fit"
        headroom = headroom_for(shown, room, verdict)
    return Estimate(
        peak_bytes=peak,
        per_gpu_bytes=peak,
        total_bytes=peak * recipe.num_gpus,
        moment=moment,
        moments=by_moment,
        reserved_bytes=reserved,
        device_bytes=device,
        parameters=shared.parameters,
        trainable_parameters=shared.trainable_parameters,
        flops_per_step=float(flops_per_step(arch, recipe, shared.flops)) + log_probs_flops(arch, recipe),
        communication_bytes=communication_bytes(arch, recipe),
        conditions=recipe.conditions(),
        evidence=evidence_for(recipe),
        warnings=warnings_for(arch, recipe),
        verdict=verdict,
        headroom_bytes=headroom,
    )


def with_speed(
    result: Estimate,
    arch: Architecture,
    recipe: Recipe,
    tflops: float | None,
    utilisation: tuple[float, float] | list[float] | None,
    asked: dict[str, float],
) -> Estimate:
    """The estimate with its speed on a card, and the time and cost that somebody asked about.

    tflops, utilisation   of the card, None where nobody knows; `asked` is what questions_from_keys gives
    """
    if tflops is None or utilisation is None:
        return result
    rate = tokens_per_second(arch, recipe, result.flops_per_step, tflops, utilisation[0], utilisation[1])
    if rate is None:
        return result
    time = hours(rate, asked["dataset_tokens"], asked["epochs"]) if asked["dataset_tokens"] > 0 else None
    money = cost(time, asked["price_per_hour"], recipe.num_gpus) if time is not None and asked["price_per_hour"] > 0 else None
    return replace(result, tokens_per_second=rate, hours=time, cost=money)


def with_start(peak: int, device: Range, start: int) -> tuple[int, Range]:
    """The step's peak and its device figures, or those before the first step where they are larger.

    Loading and preparation leave no stream or cache behind that would widen the range: what the driver shows beyond the
    tensors is then what it shows at least in a step.
    """
    low = max(device.low, start + device.low - peak)
    return max(peak, start), Range(low, max(device.high, low))


def vllm_bytes(recipe: Recipe, memory: int) -> int:
    """Bytes of a card that vLLM takes for itself beside the training; the verdict holds for the rest.

    Source: TRL 1.16.0 generation/vllm_generation.py; vLLM's gpu_memory_utilization is a share of the whole card.
    """
    return math.ceil(memory * recipe.vllm_memory_share)


def vllm_needs(arch: Architecture, recipe: Recipe) -> int:
    """What vLLM has to find room for in its share: the merged model in 16 bits and the cache of one whole sequence."""
    if recipe.generation != "vllm":
        return 0
    narrow = replace(recipe, precision="bf16", base_dtype="bfloat16", prepare_kbit=False)
    return 2 * parameter_count(arch) + cache_bytes(arch, narrow, 1, recipe.sequence_length)


def verdict_for(peak: int, device: Range, memory: int, recipe: Recipe) -> str:
    """Comfortable, tight or not at all, decided in bytes before any rounding.

    LLM.int8() keeps the columns of outliers in 16 bits (bitsandbytes, int8_mixed_scaled_mm), as many as the data has
    them: what depends on the data is never called comfortable.
    """
    roomy = peak * 100 <= memory * COMFORTABLE_PERCENT and device.high <= memory
    if roomy and recipe.quantization != "int8":
        return "comfortable"
    return "tight" if device.low <= memory else "does_not_fit"


def headroom_for(device: Range, memory: int, verdict: str) -> int:
    """The card's memory less the upper device figure, or less the lower one unless comfortable."""
    return memory - (device.high if verdict == "comfortable" else device.low)


def warnings_for(arch: Architecture, recipe: Recipe) -> tuple[str, ...]:
    """Keys of what a reader must know about this figure."""
    warnings = ["omits_" + part for part in arch.omitted]
    if recipe.optim.startswith("paged"):
        warnings.append("paged_states")
    if recipe.quantization == "int8":
        warnings.append("int8_outliers")
    if recipe.objective == "dpo":
        warnings.append("dpo_pairs")
    if recipe.generation == "vllm":
        warnings.append("vllm_beside")
    if any(shape.delta is not None for shape, _ in arch.layer_counts()):
        warnings.append("delta_rule_torch")
    return tuple(warnings)
