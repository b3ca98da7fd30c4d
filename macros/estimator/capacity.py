"""How far a recipe can be stretched on a card (longest sequence, largest batch and rank), and how many cards it needs.

A step's memory grows with each of the three, so the largest value is found by doubling until one no longer fits and
halving the gap from there. What is tried stays near the card's memory, far below what `estimate` takes for a mistake.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .architecture import Architecture
from .fit import estimate
from .checks import LIMITS
from .memory import LENGTH_STEP
from .recipe import Recipe


# Verdicts from worst to best.
RANKS = ("does_not_fit", "tight", "comfortable")
MACHINE = 8  # cards in one server; more of them come as further servers


@dataclass(frozen=True, slots=True)
class Bound:
    """The largest value of one recipe key on one card.

    comfortable   with the verdict "comfortable"; 0 if not even the smallest value gets it
    tight         with "comfortable" or "tight"; 0 if not even the smallest value fits
    most          the largest value that was tried: a bound that reaches it is set by that, not by memory
    """

    comfortable: int
    tight: int
    most: int


def longest_sequence(arch: Architecture, recipe: Recipe, memory: int, context: int | None = None) -> Bound:
    """The longest sequence in tokens, in steps of 128.

    memory    bytes that the card offers
    context   tokens that the model is made for; without it, as many as a recipe may have
    """
    most = LIMITS["sequence_length"] if context is None else max(LENGTH_STEP, min(context, LIMITS["sequence_length"]))
    steps = most // LENGTH_STEP
    found = _bound(steps, lambda count: _verdict(arch, replace(recipe, sequence_length=count * LENGTH_STEP), memory))
    return Bound(found.comfortable * LENGTH_STEP, found.tight * LENGTH_STEP, steps * LENGTH_STEP)


def largest_batch(arch: Architecture, recipe: Recipe, memory: int) -> Bound:
    """The largest micro-batch in sequences."""
    most = LIMITS["micro_batch_size"]
    return _bound(most, lambda count: _verdict(arch, replace(recipe, micro_batch_size=count), memory))


def largest_rank(arch: Architecture, recipe: Recipe, memory: int) -> Bound | None:
    """The largest rank of the adapters among the powers of two; None where nothing has a rank."""
    if not recipe.adapted:
        return None
    ranks = [1]
    while ranks[-1] * 2 <= LIMITS["lora_r"]:
        ranks.append(ranks[-1] * 2)
    found = _bound(len(ranks), lambda count: _verdict(arch, replace(recipe, lora_r=ranks[count - 1]), memory))
    ranks.insert(0, 0)
    return Bound(ranks[found.comfortable], ranks[found.tight], ranks[-1])


def smallest_number(arch: Architecture, recipe: Recipe, memory: int) -> Bound:
    """How many of a card the run needs at least: each up to eight, then whole machines of eight.

    Several cards share the run as the recipe says; where it does not divide anything, as `divided` does. Here 0 means
    that no number is enough.
    """
    numbers = [*range(1, MACHINE), *range(MACHINE, LIMITS["num_gpus"] + 1, MACHINE)]
    seen = {}

    def rank(place: int) -> int:
        if place not in seen:
            cards = numbers[place]
            shared = replace(divided(recipe), num_gpus=cards) if cards > 1 else on_one_card(recipe)
            seen[place] = RANKS.index(_verdict(arch, shared, memory))
        return seen[place]

    found = [_first(len(numbers), lambda place: rank(place) >= least) for least in (2, 1)]
    comfortable, tight = (numbers[place] if place < len(numbers) else 0 for place in found)
    return Bound(comfortable, tight, numbers[-1])


def divided(recipe: Recipe) -> Recipe:
    """The recipe with a strategy that divides the weights among cards: FSDP, unless the recipe has one or cannot have that.

    FSDP shards 4-bit weights only in a floating storage dtype.
    """
    if recipe.parallelism != "none" and recipe.parallelism != "ddp":
        return recipe
    if recipe.precision == "bf16-master":
        return replace(recipe, parallelism="zero3", num_gpus=max(2, recipe.num_gpus))
    storage = "bfloat16" if recipe.four_bit and recipe.quant_storage == "uint8" else recipe.quant_storage
    return replace(recipe, parallelism="fsdp", num_gpus=max(2, recipe.num_gpus), quant_storage=storage)


def on_one_card(recipe: Recipe) -> Recipe:
    """The recipe without what only several cards need; offloading does with one."""
    if recipe.offload_optimizer or recipe.offload_params:
        return replace(recipe, num_gpus=1)
    return replace(recipe, parallelism="none", num_gpus=1, fsdp_version=2)


def _verdict(arch: Architecture, recipe: Recipe, memory: int) -> str:
    try:
        return estimate(arch, recipe, memory).verdict
    except ValueError:  # so large that it is refused as a typing mistake
        return "does_not_fit"


def _bound(most: int, verdict) -> Bound:
    """The bound of a count from 1 on, by the verdict on each."""
    seen = {}

    def rank(count: int) -> int:
        if count not in seen:
            seen[count] = RANKS.index(verdict(count))
        return seen[count]

    return Bound(_largest(most, lambda count: rank(count) > 1), _largest(most, lambda count: rank(count) > 0), most)


def _largest(most: int, fits) -> int:
    """The largest count up to `most` that fits, where every smaller one fits too; 0 if none does."""
    low, high = 0, 1
    while high <= most and fits(high):
        low = high
        high = min(2 * high, most) if high < most else most + 1
    if high > most:
        return low
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low


def _first(most: int, fits) -> int:
    """The first place before `most` that fits, where every later one fits too; `most` if none does."""
    low, high = -1, most
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            high = middle
        else:
            low = middle
    return high
