"""The bytes of a training step on one GPU, moment by moment and part by part.

Weights, gradients and optimizer states are counted from the architecture; activations come from replaying one decoder
layer and the head (`layers.py`, `tape.py`). Nothing here is fitted to measurements.
"""

from __future__ import annotations

from dataclasses import dataclass

from .architecture import Architecture
from .layers import Builder, head
from .parameters import (
    adapter_weights,
    embedding_weights,
    layer_biases,
    layer_norm_weights,
    linears,
    parameters,
    trainable_parameters,
    trainable_tensors,
)
from .recipe import Recipe
from .tape import ACTIVATION, CAST, GRADIENT, KINDS, Peaks, Replay, Tape, Value

BLOCK = 512  # PyTorch's CUDA allocator rounds every tensor up to this; c10/core/AllocatorConfig.h, kMinBlockSize

# Part of each kind of tensor, in the order of tape.py.
KIND_PARTS = (
    "layer_activations",
    "checkpoints",
    "weight_casts",
    "dequantized_weights",
    "backward_temporaries",
    "gradients",
    "kernel_workspace",
    "logits",
    "loss_tensors",
)

PARTS = (
    "weights",
    "adapters",
    "gradients",
    "optimizer_states",
    "master_weights",
    "checkpoints",
    "layer_activations",
    "logits",
    "loss_tensors",
    "backward_temporaries",
    "dequantized_weights",
    "weight_casts",
    "gathered_shards",
    "optimizer_temporaries",
    "kernel_workspace",
    "inputs_and_buffers",
)

MOMENTS = (
    "load",
    "forward_end",
    "loss",
    "head_backward",
    "layer_backward",
    "last_layer_backward",
    "optimizer_step",
)


@dataclass(frozen=True, slots=True)
class Moment:
    """What is alive at one moment: bytes by part, and their sum."""

    total: int
    parts: dict[str, int]


def blocks(size: int) -> int:
    """Bytes that the allocator hands out for one tensor."""
    return (size + BLOCK - 1) // BLOCK * BLOCK


# ---- what stays for the whole run ----


def nf4_bytes(weights: int, double_quant: bool) -> int:
    """Bytes of one 4-bit matrix with its block constants.

    Two weights a byte; one constant per 64 weights, float32 or, doubly quantised, one byte with a float32 per 256 of
    them, their code book of 256 float32 and an offset; the code book of 16 float32.
    Source: bitsandbytes 0.50.2 functional.py, quantize_4bit and QuantState; Dettmers et al. 2023, section 3.
    """
    constants = (weights + 63) // 64
    size = blocks((weights + 1) // 2) + blocks(64)
    if not double_quant:
        return size + blocks(4 * constants)
    return size + blocks(constants) + blocks(4 * ((constants + 255) // 256)) + blocks(1024) + blocks(4)


def weight_bytes(arch: Architecture, recipe: Recipe) -> int:
    """Bytes of the base model's weights as training holds them.

    QLoRA quantises the linear layers of the decoder only; PEFT's prepare_model_for_kbit_training casts everything
    else to float32 (peft/utils/other.py).
    """
    if recipe.method != "qlora":
        return parameters(arch) * recipe.weight_bytes
    layer = 0
    for linear in linears(arch):
        layer += nf4_bytes(linear.weight, recipe.double_quant) * linear.copies
    rest = arch.num_hidden_layers * (layer_norm_weights(arch) + layer_biases(arch)) + arch.hidden_size
    rest += embedding_weights(arch) * (1 if arch.tie_word_embeddings else 2)
    return arch.num_hidden_layers * layer + rest * (4 if recipe.prepare_kbit else recipe.weight_bytes)


def trained_width(recipe: Recipe) -> int:
    """Bytes of one trained weight and of its gradient."""
    return recipe.adapter_bytes if recipe.adapted else recipe.weight_bytes


def optimizer_state_bytes(arch: Architecture, recipe: Recipe) -> int:
    """Bytes of the optimizer's states on the GPU between two steps."""
    count = trainable_parameters(arch, recipe)
    width = 4 if recipe.precision == "bf16-master" else trained_width(recipe)
    if recipe.optim == "sgd":
        return 0
    if recipe.optim == "sgd_momentum":
        return count * width
    steps = blocks(4) * trainable_tensors(arch, recipe) if recipe.optim == "adamw_torch_fused" else 0
    return 2 * width * count + steps


def optimizer_temporary_bytes(arch: Architecture, recipe: Recipe) -> int:
    """Bytes that exist only inside `optimizer.step()`."""
    count = trainable_parameters(arch, recipe)
    width = trained_width(recipe)
    largest = largest_tensor(arch, recipe)
    if recipe.precision == "bf16-master":
        foreach = 4 * (count if recipe.master_gradients != "param" else largest) if recipe.foreach else 0
        if recipe.master_gradients == "param":
            return 4 * largest + foreach
        if recipe.master_gradients == "all":
            return (4 - width) * count + foreach
        return foreach
    if recipe.optim == "adamw_torch":
        # torch/optim/adam.py: _foreach_sqrt of all second moments at once; the loop holds the root and its quotient.
        return width * count if recipe.foreach else 2 * width * largest
    return 0


def largest_tensor(arch: Architecture, recipe: Recipe) -> int:
    """Elements of the largest trained tensor."""
    if recipe.adapted:
        return recipe.lora_r * max(max(linear.inputs, linear.outputs) for linear in linears(arch))
    return max(embedding_weights(arch), max(linear.weight for linear in linears(arch)))


# ---- one decoder layer and the head ----


@dataclass(frozen=True, slots=True)
class Profile:
    """One stage, replayed once: forms in tokens t and tokens · length, by kind.

    saved      what autograd keeps of the stage after its forward (without checkpointing)
    casts      low-precision copies of weights that autocast's cache holds until the forward ends
    grads      what the stage adds to the weights' gradients
    peaks      states during its backward, with its own recomputation under checkpointing
    """

    saved: list[int]
    casts: int
    grads: int
    peaks: Peaks
    forward: Peaks


def layer_profile(arch: Architecture, recipe: Recipe, masked: bool, first: bool) -> Profile:
    """Replay one decoder layer; the first layer's input has no gradient when only adapters are trained."""
    tape = Tape(recipe.autocast)
    tape.tag = "layer"
    builder = Builder(arch, recipe, tape, False, masked)
    stream = 4 if recipe.method == "qlora" and recipe.prepare_kbit else recipe.weight_bytes
    source = tape.tensor(arch.hidden_size, stream, not (first and recipe.adapted))
    builder.decoder_layer(source)
    accumulating = recipe.gradient_accumulation_steps > 1
    casts = 0
    if recipe.autocast:
        for op in tape.ops:
            if op.output.kind == CAST and op.output.requires_grad:
                casts += op.output.fixed * op.output.width
    replay = Replay(tape, accumulating)
    saved = [0] * (3 * KINDS)
    forward = Peaks()
    if recipe.gradient_checkpointing:
        replay.begin_backward("backward layer")
        replay.forward(source, True)
    else:
        replay.forward(source, False)
        output = tape.ops[-1].output
        replay.count(output, -1)
        saved = list(replay.live)
        forward = replay.peaks
        replay.peaks = Peaks()
        replay.alive.pop(id(output), None)
        replay.begin_backward("backward layer")
    replay.backward()
    return Profile(saved, casts, replay.live[3 * GRADIENT + 1], replay.peaks, forward)


def head_profile(arch: Architecture, recipe: Recipe) -> Profile:
    """Replay the final norm, the head and the loss."""
    tape = Tape(recipe.autocast)
    builder = Builder(arch, recipe, tape, False, False)
    stream = 4 if recipe.method == "qlora" and recipe.prepare_kbit else recipe.weight_bytes
    source = tape.tensor(arch.hidden_size, stream, True)
    head(builder, source)
    replay = Replay(tape, recipe.gradient_accumulation_steps > 1)
    replay.forward(source, False)
    if recipe.keep_outputs or recipe.autocast:
        logits = next(op.output for op in tape.ops if op.tag == "head" and op.output.per_token == arch.vocab_size)
        kept = Value(arch.vocab_size, 0, 0, 4 if recipe.autocast else logits.width, False, logits.kind)
        replay.count(kept, 1)
        if recipe.autocast:
            # accelerate's ConvertOutputsToFp32 copies the logits while the originals are still referenced.
            replay.count(logits, 1)
            replay.see("forward loss")
            replay.count(logits, -1)
        if not recipe.keep_outputs:
            replay.count(kept, -1)
    forward = replay.peaks
    replay.peaks = Peaks()
    replay.begin_backward("backward loss")
    replay.backward()
    return Profile([], 0, replay.live[3 * GRADIENT + 1], replay.peaks, forward)


def by_part(live: list[int], tokens: int, square: int) -> dict[str, int]:
    """A state's bytes by part for a number of tokens."""
    parts = {}
    for kind in range(KINDS):
        size = live[3 * kind] * tokens + live[3 * kind + 1] + live[3 * kind + 2] * square
        if size != 0:
            parts[KIND_PARTS[kind]] = parts.get(KIND_PARTS[kind], 0) + size
    return parts


def moments(arch: Architecture, recipe: Recipe) -> dict[str, Moment]:
    """Bytes by part at each named moment of a step."""
    tokens = recipe.tokens
    square = tokens * recipe.sequence_length
    layers = arch.num_hidden_layers
    stream = 4 if recipe.method == "qlora" and recipe.prepare_kbit else recipe.weight_bytes
    masked = recipe.padding
    inner = layer_profile(arch, recipe, masked, False)
    first = layer_profile(arch, recipe, masked, True) if recipe.adapted else inner
    top = head_profile(arch, recipe)

    trained = trainable_parameters(arch, recipe)
    gradients = trained * trained_width(recipe)
    accumulating = recipe.gradient_accumulation_steps > 1
    static = {
        "weights": weight_bytes(arch, recipe),
        "adapters": adapter_weights(arch, recipe) * recipe.adapter_bytes if recipe.adapted else 0,
        "optimizer_states": optimizer_state_bytes(arch, recipe),
        "master_weights": 4 * trained if recipe.precision == "bf16-master" else 0,
        "gradients": gradients if accumulating else 0,
    }
    if recipe.precision == "bf16-master" and recipe.master_gradients == "persistent":
        static["gradients"] += 4 * trained
    inputs = 16 * tokens + 2 * stream * arch.head_dim * recipe.sequence_length
    hidden = arch.hidden_size * tokens

    def moment(*additions: dict[str, int]) -> Moment:
        parts = dict(static)
        parts["inputs_and_buffers"] = inputs
        for addition in additions:
            for name, size in addition.items():
                parts[name] = parts.get(name, 0) + size
        parts = {name: parts[name] for name in PARTS if parts.get(name)}
        return Moment(sum(parts.values()), parts)

    def stack(count: int) -> dict[str, int]:
        """What `count` layers keep for their backward, the first one included."""
        if recipe.gradient_checkpointing:
            return {"checkpoints": count * hidden * stream}
        if count == 0:
            return {}
        kept = by_part(first.saved, tokens, square)
        for name, size in by_part(inner.saved, tokens, square).items():
            kept[name] = kept.get(name, 0) + size * (count - 1)
        return kept

    cached = {"weight_casts": layers * inner.casts} if recipe.gradient_checkpointing else {}
    results = {"load": Moment(static["weights"], {"weights": static["weights"]})}
    results["forward_end"] = moment(stack(layers), cached, {"layer_activations": hidden * stream})

    def states(peaks: Peaks, tag: str):
        live = peaks.states.get(tag, [])
        return [by_part(state[3], tokens, square) for state in live]

    options = [moment(stack(layers), cached, state) for state in states(top.forward, "forward loss")]
    options += [moment(stack(layers), cached, state) for state in states(top.forward, "forward head")]
    options += [moment(stack(layers), state) for state in states(top.peaks, "backward loss")]
    results["loss"] = largest(options)
    results["head_backward"] = largest([moment(stack(layers), state) for state in states(top.peaks, "backward head")])

    kept_outputs = {}
    if recipe.keep_outputs:
        kept_outputs = {"logits": arch.vocab_size * tokens * (4 if recipe.autocast else stream)}
    options = [moment(stack(layers), state) for state in states(top.peaks, "backward layer")]
    for index, profile in ((layers - 1, inner), (0, first)):
        done = {"gradients": top.grads + (layers - 1 - index) * inner.grads}
        below = stack(index + 1 if recipe.gradient_checkpointing else index)
        options += [moment(below, done, kept_outputs, state) for state in states(profile.peaks, "backward layer")]
    results["layer_backward"] = largest(options)

    if recipe.adapted:
        results["last_layer_backward"] = moment({"gradients": 0 if accumulating else gradients}, kept_outputs)
    else:
        table = embedding_weights(arch) * recipe.weight_bytes
        again = table if arch.tie_word_embeddings or accumulating else 0
        results["last_layer_backward"] = moment(
            {"gradients": 0 if accumulating else gradients, "backward_temporaries": again + hidden * stream},
            kept_outputs,
        )
    results["optimizer_step"] = moment(
        {
            "gradients": 0 if accumulating else gradients,
            "optimizer_temporaries": optimizer_temporary_bytes(arch, recipe),
        }
    )
    return results


def largest(options: list[Moment]) -> Moment:
    """The moment with the most bytes."""
    best = options[0]
    for option in options:
        if option.total > best.total:
            best = option
    return best
