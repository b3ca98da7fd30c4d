"""How far a recipe can be stretched on a card: the longest sequence, the largest batch, the largest rank that still fit.

A step's memory grows with each of the three, so the largest value is found by doubling until one no longer fits and
halving the gap from there. What is tried stays near the card's memory, far below what `estimate` takes for a mistake.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .architecture import Architecture
from .fit import estimate
from .memory import LENGTH_STEP
from .recipe import LIMITS, Recipe


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


def _verdict(arch: Architecture, recipe: Recipe, memory: int) -> str:
    return estimate(arch, recipe, memory).verdict


def _bound(most: int, verdict) -> Bound:
    """The bound of a count from 1 on, by the verdict on each."""
    seen = {}

    def rank(count: int) -> int:
        if count not in seen:
            seen[count] = verdict(count)
        return ("does_not_fit", "tight", "comfortable").index(seen[count])

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
