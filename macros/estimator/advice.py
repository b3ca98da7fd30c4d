"""What to change first when a run does not fit: the measures in order, from those that cost nothing to those that cost data.

Each measure changes the recipe as the ones before it left it. One is left out where it does not apply, where the recipe
refuses it, and where it does not help.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .architecture import Architecture
from .capacity import MACHINE, divided, longest_sequence
from .checks import LIMITS
from .fit import Estimate, estimate
from .memory import LENGTH_STEP
from .recipe import ADAPTER_KEYS, MASTER_KEYS, QLORA_KEYS, Recipe, applicable_keys

# A measure that saves less than this share of the peak is not worth a reader's time, unless the verdict gets better by it.
WORTH_PERCENT = 1

MEASURES = (
    "base_in_16_bits",
    "loss_in_chunks",
    "sdpa_attention",
    "drop_outputs",
    "precompute_reference",
    "gradient_checkpointing",
    "batch_of_one",
    "flash_attention",
    "optimizer_8bit",
    "paged_optimizer",
    "without_preparation",
    "frozen_tables",
    "without_dora",
    "without_dropout",
    "checkpoint_offload",
    "bf16_weights",
    "four_bit",
    "lora",
    "qlora",
    "offload_optimizer",
    "offload_params",
    "sharding",
    "more_cards",
    "shorter_sequence",
)

# Where several cards are there already, dividing the run among them costs less than any change of the training.
SHARED_FIRST = ("sharding", *[name for name in MEASURES if name != "sharding"])

# The loss without logits that goes with the kernels of a run: TRL's in tiles, or a fused one of the kernels' own kind.
CHUNKED_LOSS = {"none": "chunked", "liger": "fused", "foak": "fused", "unsloth": "fused"}
EIGHT_BIT = {
    "adamw_torch_fused": "adamw_bnb_8bit",
    "adamw_torch": "adamw_bnb_8bit",
    "paged_adamw_32bit": "paged_adamw_8bit",
    "paged_adamw": "paged_adamw_8bit",
    "lion_32bit": "lion_8bit",
    "paged_lion_32bit": "paged_lion_8bit",
}
PAGED = {"adamw_bnb_8bit": "paged_adamw_8bit", "adamw_8bit": "paged_adamw_8bit", "lion_8bit": "paged_lion_8bit"}
VERDICTS = (None, "does_not_fit", "tight", "comfortable")


@dataclass(frozen=True, slots=True)
class Measure:
    """One change of a recipe.

    name           one of MEASURES
    changes        recipe keys with their new values, for `changed`
    saving_bytes   how much lower the peak gets by it after the measures before it
    alone_bytes    how much lower the peak of the recipe itself gets by it alone, negative if higher; None if it does not
                   apply alone, or was not asked for
    peak_bytes     the peak after it
    verdict        on the card after it; None without a card
    """

    name: str
    changes: dict[str, object]
    saving_bytes: int
    alone_bytes: int | None
    peak_bytes: int
    verdict: str | None


@dataclass(frozen=True, slots=True)
class Advice:
    """What to change first.

    peak_bytes   the peak of the recipe as it is
    verdict      on the card as it is; None without a card
    measures     in order; none follows one that makes the run fit comfortably
    fits_after   how many of them make it fit at all: 0 if it does as it is, None if they do not or without a card
    """

    peak_bytes: int
    verdict: str | None
    measures: tuple[Measure, ...]
    fits_after: int | None


def advise(
    arch: Architecture, recipe: Recipe, memory: int | None = None, prepare_kbit: bool = True, alone: bool = False
) -> Advice:
    """The measures for a recipe.

    memory         bytes that the card offers
    prepare_kbit   whether the framework casts what is not quantised to float32 when it trains with QLoRA
    alone          whether to work out too what each measure saves alone, which takes about twice as long
    """
    start = estimate(arch, recipe, memory)
    current, peak, verdict = recipe, start.peak_bytes, start.verdict
    measures = []
    # What does not help at first may help once another part sets the peak; cutting data comes after all else.
    left_out = {}
    order = MEASURES if recipe.num_gpus == 1 else SHARED_FIRST
    for name in (*order[:-1], *order):
        if verdict == "comfortable":
            break
        if left_out.get(name) == len(measures) or any(measure.name == name for measure in measures):
            continue
        left_out[name] = len(measures)
        proposed = proposal(arch, current, name, memory, prepare_kbit)
        after = None if proposed is None else _estimated(arch, proposed, memory)
        if after is None:
            continue
        saving = peak - after.peak_bytes
        better = VERDICTS.index(after.verdict) > VERDICTS.index(verdict)
        if saving <= 0 or (saving * 100 < peak * WORTH_PERCENT and not better):
            continue
        alone_bytes = None
        if alone:
            first = proposal(arch, recipe, name, memory, prepare_kbit)
            by_itself = None if first is None else _estimated(arch, first, None)
            alone_bytes = None if by_itself is None else start.peak_bytes - by_itself.peak_bytes
        changes = changes_between(current, proposed)
        measures.append(Measure(name, changes, saving, alone_bytes, after.peak_bytes, after.verdict))
        current, peak, verdict = proposed, after.peak_bytes, after.verdict
    return Advice(start.peak_bytes, start.verdict, tuple(measures), _fits_after(start.verdict, measures))


def _estimated(arch: Architecture, recipe: Recipe, memory: int | None) -> Estimate | None:
    """The estimate after a measure; None where it is refused, such as adapters on every single expert."""
    try:
        return estimate(arch, recipe, memory)
    except ValueError:
        return None


def proposal(
    arch: Architecture, recipe: Recipe, name: str, memory: int | None, prepare_kbit: bool
) -> Recipe | None:
    """The recipe with one measure taken, None where there is nothing to take."""
    if name == "shorter_sequence":
        return _shorter(arch, recipe, memory)
    if name == "lora" or name == "qlora":
        return _adapted(recipe, name, prepare_kbit)
    if name == "sharding" or name == "more_cards":
        return _shared(arch, recipe, name, memory)
    if name == "offload_optimizer" and not recipe.offload_optimizer and recipe.parallelism != "fsdp":
        plain = recipe.parallelism == "none" or recipe.parallelism == "ddp"
        return replace(recipe, parallelism="zero2" if plain else recipe.parallelism, offload_optimizer=True)
    if name == "offload_params" and not recipe.offload_params and recipe.method != "qlora":
        strategy = "fsdp" if recipe.parallelism == "fsdp" else "zero3"
        return replace(recipe, parallelism=strategy, offload_optimizer=True, offload_params=True)
    if name == "base_in_16_bits" and recipe.adapted and recipe.base_dtype == "float32":
        wide = recipe.precision == "fp32-autocast" or recipe.precision == "fp32"
        return replace(recipe, base_dtype="bfloat16", precision="bf16-autocast" if wide else recipe.precision)
    if name == "loss_in_chunks" and recipe.loss == "standard" and recipe.objective != "sft":
        return replace(recipe, loss="chunked") if recipe.transformers == "5" else None
    if name == "precompute_reference" and recipe.objective == "dpo" and recipe.reference != "precomputed":
        return replace(recipe, reference="precomputed")
    if name == "loss_in_chunks" and recipe.loss == "standard" and recipe.kernels in CHUNKED_LOSS:
        # TRL's tiles came with transformers 5; before, Liger's kernel was there.
        return replace(recipe, loss=CHUNKED_LOSS[recipe.kernels] if recipe.transformers == "5" else "fused")
    if name == "sdpa_attention" and recipe.attention == "eager":
        return replace(recipe, attention="sdpa")
    if name == "flash_attention" and recipe.attention == "sdpa" and recipe.precision != "fp32":
        return replace(recipe, attention="flash")
    if name == "drop_outputs" and recipe.keep_outputs:
        return replace(recipe, keep_outputs=False)
    if name == "gradient_checkpointing" and not recipe.gradient_checkpointing:
        return replace(recipe, gradient_checkpointing=True)
    if name == "batch_of_one" and recipe.micro_batch_size > 1:
        steps = recipe.micro_batch_size * recipe.gradient_accumulation_steps
        if steps <= LIMITS["gradient_accumulation_steps"]:
            return replace(recipe, micro_batch_size=1, gradient_accumulation_steps=steps)
    if name == "optimizer_8bit" and recipe.optim in EIGHT_BIT:
        return replace(recipe, optim=EIGHT_BIT[recipe.optim], foreach=False)
    if name == "paged_optimizer" and recipe.optim in PAGED:
        return replace(recipe, optim=PAGED[recipe.optim])
    if name == "without_preparation" and recipe.upcast:
        return replace(recipe, prepare_kbit=False)
    if name == "frozen_tables" and recipe.adapted and recipe.modules_to_save:
        return replace(recipe, modules_to_save=())
    if name == "without_dora" and recipe.adapted and recipe.use_dora:
        return replace(recipe, use_dora=False)
    if name == "without_dropout" and recipe.adapted and recipe.lora_dropout > 0:
        return replace(recipe, lora_dropout=0.0)
    if name == "checkpoint_offload" and recipe.gradient_checkpointing and not recipe.checkpoint_offload:
        return replace(recipe, checkpoint_offload=True)
    if name == "bf16_weights" and not recipe.adapted and recipe.precision != "bf16" and recipe.precision != "bf16-master":
        return replace(recipe, precision="bf16", base_dtype="bfloat16")
    if name == "four_bit" and recipe.method == "qlora" and recipe.quantization == "int8":
        return replace(recipe, quantization="nf4", double_quant=True)
    return None


def _shorter(arch: Architecture, recipe: Recipe, memory: int | None) -> Recipe | None:
    """With the longest sequence that fits the card, comfortably if any does; without a card, half as long."""
    length = recipe.sequence_length // 2 // LENGTH_STEP * LENGTH_STEP
    if memory is not None:
        bound = longest_sequence(arch, recipe, memory, recipe.sequence_length)
        length = bound.comfortable or bound.tight
    shortest = max(LENGTH_STEP, recipe.prompt_length + 1)  # a prompt needs a completion
    if length < shortest or length >= recipe.sequence_length:
        return None
    return replace(recipe, sequence_length=length)


def _shared(arch: Architecture, recipe: Recipe, name: str, memory: int | None) -> Recipe | None:
    """Divided among the cards there are or the fewest in one machine that are enough; or among more than so far."""
    weights_divided = recipe.num_gpus > 1 and (recipe.parallelism == "zero3" or recipe.parallelism == "fsdp")
    if weights_divided != (name == "more_cards"):
        return None
    shared = divided(recipe)
    if shared.parallelism == "zero1" or shared.parallelism == "zero2":
        shared = replace(shared, parallelism="zero3")
    numbers = [number for number in (2, 4, MACHINE) if number > recipe.num_gpus]
    if name == "sharding" and recipe.num_gpus > 1:
        numbers = [recipe.num_gpus]
    if not numbers:
        return None if name == "more_cards" else shared
    if memory is None:
        return replace(shared, num_gpus=numbers[0])
    for number in numbers:
        shared = replace(shared, num_gpus=number)
        if estimate(arch, shared, memory).verdict != "does_not_fit":
            break
    return shared


def _adapted(recipe: Recipe, method: str, prepare_kbit: bool) -> Recipe | None:
    """The same run with adapters on a frozen base in 16 bits, or in 4 bits."""
    if recipe.method == method or recipe.method == "qlora":
        return None
    narrow = recipe.adapted and (recipe.precision == "bf16" or recipe.precision == "bf16-autocast")
    result = replace(
        recipe,
        method=method,
        precision=recipe.precision if narrow else "bf16-autocast",
        base_dtype="bfloat16" if recipe.base_dtype == "float32" else recipe.base_dtype,
        master_gradients="param",
        reference="adapter" if recipe.reference == "model" else recipe.reference,
    )
    if method == "qlora":
        result = replace(result, quantization="nf4", double_quant=True, prepare_kbit=prepare_kbit)
    return result


def changes_between(before: Recipe, after: Recipe) -> dict[str, object]:
    """The keys that differ, as a person would type them; with another method, all that a preset could decide otherwise."""
    old, new = before.conditions(), after.conditions()
    switched = before.method != after.method
    decided = ("precision", "base_dtype", *ADAPTER_KEYS, *(QLORA_KEYS if after.method == "qlora" else ()))
    if before.parallelism != after.parallelism:
        old["num_gpus"] = None  # how many cards belongs to how they share
    applicable = applicable_keys(after.method)
    return {
        key: new[key]
        for key in applicable
        if (new[key] != old[key] or (switched and key in decided)) and (key not in MASTER_KEYS or after.precision == "bf16-master")
    }


def changed(keys: dict[str, object], changes: dict[str, object]) -> dict[str, object]:
    """What somebody typed with a measure's changes, less the keys that do not apply any more."""
    result = {**keys, **changes}
    dropped = []
    if "method" in changes:
        method = changes["method"]
        applicable = applicable_keys(method)
        dropped += [key for key in (*ADAPTER_KEYS, *QLORA_KEYS, *MASTER_KEYS) if key not in applicable]
        if method == "full":
            dropped.append("base_dtype")  # which precision decides
        elif result.get("precision") == "bf16-master":
            dropped += ["precision", "base_dtype"]
    if "precision" in changes:
        dropped += ["base_dtype", "master_gradients"]
    if "optim" in changes:
        dropped.append("foreach")
    return {key: result[key] for key in result if key in changes or key not in dropped}


def _fits_after(verdict: str | None, measures: list[Measure]) -> int | None:
    verdicts = [verdict, *[measure.verdict for measure in measures]]
    for count, each in enumerate(verdicts):
        if each == "tight" or each == "comfortable":
            return count
    return None
