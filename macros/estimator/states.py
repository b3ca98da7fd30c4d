"""What stays on the card for the whole run, and what exists only inside the optimizer's step.

Source of the optimizers' states: torch 2.13 optim/adam.py, sgd.py, _muon.py; bitsandbytes 0.50.2 optim/optimizer.py;
transformers 5.24.0 optimization.py (Adafactor) and trainer_optimizer.py (which class a name of `optim` means).
"""

from __future__ import annotations

from .architecture import Architecture
from .parameters import (
    Tensors,
    embedding_weights,
    parameter_count,
    quantized_weights,
    trainable_parameters,
    trained_tensors,
)
from .recipe import Recipe

BLOCK = 512  # PyTorch's CUDA allocator rounds every tensor up to this: c10/cuda/CUDACachingAllocator, kMinBlockSize

# bitsandbytes keeps states in 32 bits for tensors with fewer elements than this, and for embeddings.
MIN_8BIT_SIZE = 4096
# One float32 constant for each block of this many 8-bit states.
STATE_BLOCK = 256
# Tensors from this many elements on get paged states, in managed memory that PyTorch's allocator does not count.
PAGED_FROM = 100_000


def blocks(size: int) -> int:
    """Bytes that the allocator hands out for one tensor."""
    return (size + BLOCK - 1) // BLOCK * BLOCK


def nf4_bytes(weights: int, double_quant: bool) -> int:
    """Bytes of one 4-bit matrix with its block constants.

    Two weights a byte; one constant per 64 weights, float32 or, doubly quantised, one byte with a float32 per 256 of
    them, their code book of 256 float32 and an offset; the code book of 16 float32.
    Source: bitsandbytes 0.50.2 functional.py, quantize_4bit and QuantState; dettmers-2023-qlora, section 3.
    """
    constants = (weights + 63) // 64
    size = blocks((weights + 1) // 2) + blocks(64)
    if not double_quant:
        return size + blocks(4 * constants)
    return size + blocks(constants) + blocks(4 * ((constants + 255) // 256)) + blocks(1024) + blocks(4)


def int8_bytes(weights: int, outputs: int) -> int:
    """Bytes of one matrix in LLM.int8(): one byte a weight and one float32 scale per output (Linear8bitLt)."""
    return blocks(weights) + blocks(4 * outputs)


def gptq_bytes(weights: int, inputs: int) -> int:
    """Bytes of one 4-bit GPTQ or AWQ matrix with groups of 128: weights, a 16-bit scale and a 4-bit zero per group,
    and for GPTQ the group of each input as int32 (counted for both)."""
    groups = (weights + 127) // 128
    return blocks((weights + 1) // 2) + blocks(2 * groups) + blocks((groups + 1) // 2) + blocks(4 * inputs)


def stream_width(recipe: Recipe) -> int:
    """Bytes of one element of the residual stream: the dtype of the embeddings.

    PEFT's prepare_model_for_kbit_training casts everything that is not quantised to float32 (peft/utils/other.py).
    """
    return 4 if recipe.upcast else recipe.weight_bytes


def hidden_width(recipe: Recipe) -> int:
    """Bytes of one element of the hidden states between the layers.

    DoRA's float32 magnitude makes the adapted layers' results float32, and over a quantised base PEFT does not cast
    them back under autocast (peft/tuners/lora/bnb.py), so that the residual stream is float32 from the first layer on.
    """
    ends = ("o_proj", "down_proj")
    reached = recipe.target_modules == "all-linear" or any(name in recipe.target_modules for name in ends)
    widened = recipe.use_dora and recipe.method == "qlora" and recipe.autocast
    return 4 if widened and reached else stream_width(recipe)


def table_width(recipe: Recipe) -> int:
    """Bytes of one element of embeddings and head."""
    return 2 if recipe.upcast and recipe.kbit_tables == "bfloat16" else stream_width(recipe)


def weight_bytes(arch: Architecture, recipe: Recipe) -> int:
    """Bytes of the base model's weights as training holds them; QLoRA quantises the decoder's linear layers only."""
    if recipe.method != "qlora":
        return parameter_count(arch) * recipe.weight_bytes
    quantized, size = 0, 0
    for linear, count in quantized_weights(arch, recipe):
        quantized += linear.weight * count
        if recipe.four_bit:
            size += nf4_bytes(linear.weight, recipe.double_quant) * count
        elif recipe.quantization == "int8":
            size += int8_bytes(linear.weight, linear.outputs) * count
        else:
            size += gptq_bytes(linear.weight, linear.inputs) * count
    tables = embedding_weights(arch) * (1 if arch.tie_word_embeddings else 2)
    return size + (parameter_count(arch) - quantized - tables) * stream_width(recipe) + tables * table_width(recipe)


def adapter_bytes(arch: Architecture, recipe: Recipe) -> int:
    """Bytes of everything that is trained beside the base model."""
    if not recipe.adapted:
        return 0
    total = 0
    for tensors in trained_tensors(arch, recipe):
        total += tensors.count * tensors.width * tensors.copies
    return total


def gradient_bytes(arch: Architecture, recipe: Recipe) -> int:
    """Bytes of the gradients once all of them exist."""
    total = 0
    for tensors in trained_tensors(arch, recipe):
        total += tensors.count * tensors.width * tensors.copies
    return total


def master_bytes(arch: Architecture, recipe: Recipe) -> int:
    """Bytes of the float32 copies of the weights."""
    return 4 * trainable_parameters(arch, recipe) if recipe.precision == "bf16-master" else 0


def optimizer_state_bytes(arch: Architecture, recipe: Recipe) -> int:
    """Bytes of the optimizer's states between two steps, as PyTorch's allocator counts them."""
    return states_of(trained_tensors(arch, recipe), recipe.optim, 4 if recipe.precision == "bf16-master" else 0)


def states_of(trained: list[Tensors], optim: str, width: int) -> int:
    """Bytes of the states of these tensors.

    width   bytes of the dtype that the optimizer sees; 0 for the tensors' own
    """
    total = 0
    for tensors in trained:
        total += tensors.copies * tensor_state_bytes(tensors, optim, width or tensors.width)
    return total


def tensor_state_bytes(tensors: Tensors, optim: str, width: int) -> int:
    """Bytes of the states of one trained tensor.

    width   bytes of the dtype that the optimizer sees (its states take it over in torch's own optimizers)
    """
    count = tensors.count
    if optim == "adamw_torch_fused":
        return 2 * width * count + blocks(4)  # the step counter lives on the card
    if optim == "adamw_torch":
        return 2 * width * count
    if optim == "sgd":
        return 0
    if optim == "sgd_momentum":
        return width * count
    if optim == "muon":
        return width * count if tensors.rows > 1 and not tensors.table else 2 * width * count
    if optim == "adafactor":
        return 4 * (tensors.rows + tensors.columns) if tensors.rows > 1 else 4 * count
    moments = 1 if "lion" in optim else 2
    if optim.startswith("paged") and count >= PAGED_FROM:
        return moments * 4 * ((count + STATE_BLOCK - 1) // STATE_BLOCK) if stored_in_8_bits(tensors, optim) else 0
    if stored_in_8_bits(tensors, optim):
        return moments * (count + 4 * ((count + STATE_BLOCK - 1) // STATE_BLOCK))
    return moments * 4 * count


def stored_in_8_bits(tensors: Tensors, optim: str) -> bool:
    """Whether bitsandbytes keeps the states of this tensor in 8 bits."""
    return "8bit" in optim and tensors.count >= MIN_8BIT_SIZE and not tensors.embedding


def optimizer_temporary_bytes(arch: Architecture, recipe: Recipe) -> int:
    """Bytes that exist only inside `optimizer.step()`."""
    trained = trained_tensors(arch, recipe)
    if recipe.precision == "bf16-master":
        return master_temporary_bytes(arch, recipe, trained)
    return temporaries_of(trained, recipe)


def temporaries_of(trained: list[Tensors], recipe: Recipe) -> int:
    """Bytes that a step over these tensors needs for a while."""
    if recipe.optim == "adamw_torch":
        # _foreach_sqrt of all second moments at once; without foreach, one root and its quotient.
        if recipe.foreach:
            return sum(tensors.count * tensors.width * tensors.copies for tensors in trained)
        return single_tensor_bytes(trained, 0)
    if recipe.optim == "adafactor":
        # Square of the gradient and update in float32, with float32 copies of gradient and weight if these are narrower.
        return max((8 if tensors.width == 4 else 16) * tensors.count for tensors in trained)
    if recipe.optim == "muon":
        # The update in the gradient's dtype, two bfloat16 iterates, two Gram matrices (Newton-Schulz).
        largest = 0
        for tensors in trained:
            if tensors.rows > 1 and not tensors.table:
                gram = 4 * min(tensors.rows, tensors.columns) ** 2
                largest = max(largest, (tensors.width + 4) * tensors.count + gram)
        return largest
    return 0


def single_tensor_bytes(trained: list[Tensors], width: int) -> int:
    """AdamW tensor by tensor: a root and its quotient, while the quotient of the tensor before is still bound.

    width   bytes of an element; 0 for the tensors' own
    Source: torch 2.13 optim/adam.py, _single_tensor_adam. The order is that of named_parameters().
    """
    largest, before = 0, 0
    for tensors in trained:
        size = tensors.count * (width or tensors.width)
        # A table stands alone: the embedding comes first, and before the head there is only a norm.
        largest = max(largest, 2 * size + (0 if tensors.table else before))
        before = 0 if tensors.table else size
    return largest


def master_temporary_bytes(arch: Architecture, recipe: Recipe, trained: list[Tensors]) -> int:
    """Float32 gradients that the optimizer of float32 master weights makes, one at a time or all at once."""
    width, count = recipe.weight_bytes, trainable_parameters(arch, recipe)
    by_tensor = recipe.optim == "adamw_torch" and not recipe.foreach
    if recipe.master_gradients == "param":
        # An optimizer for each tensor: the gradient, with foreach its root, tensor by tensor root and quotient.
        return (12 if by_tensor else 8 if recipe.foreach else 4) * max(tensors.count for tensors in trained)
    inner = 4 * count if recipe.foreach else single_tensor_bytes(trained, 4) if by_tensor else 0
    if recipe.master_gradients == "persistent":
        # The 16-bit gradients are copied into the persistent ones and released before the step.
        return max(0, inner - width * count)
    # "all": each gradient is cast and released in turn; while the last one is cast, both copies of it exist.
    last = arch.hidden_size if arch.tie_word_embeddings else embedding_weights(arch)
    return (4 - width) * count + max(inner, width * last)
