"""A decoder layer and the head, each replayed once for a model and a recipe."""

from __future__ import annotations

from dataclasses import dataclass

from .architecture import Architecture
from .compute import tape_flops
from .gemma4 import per_layer_inputs
from .head import head
from .layers import Builder
from .recipe import Recipe
from .replay import Peaks, Replay
from .shapes import LayerShape
from .states import hidden_width, stream_width
from .tape import GRADIENT, KINDS, Tape, Value


@dataclass(frozen=True, slots=True)
class Stage:
    """What one stage of the step keeps, and the states that can be its peak.

    saved      form of what autograd keeps from its forward to its backward, by kind; empty under checkpointing
    casts      bytes of low-precision weights in autocast's cache until the whole forward ends
    gradients  bytes that its backward adds to the weights' gradients
    stored     keys and values that it keeps for later layers
    retained   the same after its recomputation, with all that the recomputed graph behind them had saved
    forward    states of its forward
    backward   states of its backward, under checkpointing with its recomputation
    flops      FLOPs of forward, recomputation and backward: per token, fixed, per token · length
    """

    saved: list[int]
    casts: int
    gradients: int
    forward: Peaks
    backward: Peaks
    stored: list[int]
    retained: list[int]
    flops: list[float]


def decoder_stage(arch: Architecture, recipe: Recipe, shape: LayerShape, masked: bool, first: bool) -> Stage:
    """One decoder layer; the input of the first has no gradient where only adapters are trained."""
    tape = Tape(recipe.autocast)
    tape.tag = "layer"
    source = tape.tensor(arch.hidden_size, hidden_width(recipe), not first or input_requires_grad(recipe))
    builder = Builder(arch, recipe, tape, shape, masked)
    builder.decoder_layer(source)
    stored, retained = forms(builder.stored), forms(tape.saved_upstream(builder.stored))
    replay = Replay(tape, recipe.gradient_accumulation_steps > 1)
    saved, forward = [0] * (3 * KINDS), Peaks()
    again = 0
    if recipe.gradient_checkpointing:
        again = len(tape.ops) if recipe.use_reentrant else replay.recomputed_ops()
        replay.begin_backward("backward layer")
        replay.backward_recomputing(source, recipe.use_reentrant)
        if not recipe.use_reentrant:
            # A reentrant checkpoint runs its first forward without autograd, so that no op keeps anything.
            for value in tape.pinned:
                saved[3 * value.kind] += value.per_token * value.width
    else:
        replay.forward(source, False)
        replay.drop_unsaved(tape.ops[-1].output.storage())  # it is the next stage's input
        saved, forward = list(replay.live), replay.peaks
        replay.peaks = Peaks()
        replay.begin_backward("backward layer")
        replay.backward(0, len(tape.ops))
    return Stage(
        saved,
        tape.cached_casts,
        replay.live[3 * GRADIENT + 1],
        forward,
        replay.peaks,
        stored,
        retained,
        tape_flops(tape, again),
    )


def inputs_stage(arch: Architecture, recipe: Recipe) -> Stage:
    """Gemma 4's per-layer inputs, which all layers share: what they keep from before the first layer to the very end."""
    tape = Tape(recipe.autocast)
    tape.tag = "inputs"
    source = tape.tensor(arch.hidden_size, stream_width(recipe), input_requires_grad(recipe))
    per_layer_inputs(Builder(arch, recipe, tape, arch.layers[0], False), source)
    replay = Replay(tape, recipe.gradient_accumulation_steps > 1)
    replay.forward(source, False)
    if recipe.gradient_checkpointing and id(source) in replay.alive:
        replay.count(source, -1)  # the first layer's checkpoint
        del replay.alive[id(source)]
    saved = list(replay.live)
    replay.peaks = Peaks()
    if tape.ops[-1].output.requires_grad:
        replay.begin_backward("backward inputs")
        replay.backward(0, len(tape.ops))
    casts, flops = tape.cached_casts, tape_flops(tape, 0)
    return Stage(saved, casts, replay.live[3 * GRADIENT + 1], Peaks(), replay.peaks, forms([]), forms([]), flops)


def forms(values: list[Value]) -> list[int]:
    """The memory of some tensors by kind."""
    live = [0] * (3 * KINDS)
    for value in values:
        owner = value.storage()
        live[3 * owner.kind] += owner.per_token * owner.width
        live[3 * owner.kind + 1] += owner.fixed * owner.width
        live[3 * owner.kind + 2] += owner.per_square * owner.width
    return live


def input_requires_grad(recipe: Recipe) -> bool:
    """Whether the embeddings' output has a gradient: they are trained, or checkpointing asks for it."""
    return not recipe.adapted or recipe.gradient_checkpointing or "embed_tokens" in recipe.modules_to_save


def head_stage(arch: Architecture, recipe: Recipe) -> Stage:
    """Final norm, head and loss, forwards and backwards."""
    tape = Tape(recipe.autocast)
    source = tape.tensor(arch.hidden_size, hidden_width(recipe), True)
    logits = head(Builder(arch, recipe, tape, arch.layers[-1], False), source)
    replay = Replay(tape, recipe.gradient_accumulation_steps > 1)
    replay.forward(source, False)
    if logits is not None and recipe.autocast and logits.width != 4:
        # accelerate's ConvertOutputsToFp32 copies the logits while the originals are still referenced.
        copy = Value(arch.vocab_size, 0, 0, 4, False, logits.kind)
        replay.count(logits, 1)
        replay.count(copy, 1)
        replay.see("forward loss")
        replay.count(logits, -1)
        logits = copy
        replay.count(copy, -1)
    if logits is not None and recipe.keep_outputs:
        replay.count(logits, 1)
    forward = replay.peaks
    replay.peaks = Peaks()
    replay.begin_backward("backward loss")
    replay.backward(0, len(tape.ops))
    kept = [0] * (3 * KINDS)
    if logits is not None and recipe.keep_outputs:
        kept[3 * logits.kind] = logits.per_token * logits.width
    flops = tape_flops(tape, 0)
    return Stage(kept, 0, replay.live[3 * GRADIENT + 1], forward, replay.peaks, forms([]), forms([]), flops)
