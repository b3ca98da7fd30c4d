"""The host's memory (RAM) of one run: while loading, training, saving, resuming and merging.

What a process maps from files is left out of these figures: the system can drop such pages and read them again.
Sources: transformers 5.24.0, peft 0.21.2, accelerate 1.15.0, bitsandbytes 0.50.2, torch 2.13; see each function.
"""

from __future__ import annotations

from .architecture import Architecture
from .disk import optimizer_file_bytes, tensor_file_bytes, trained_file_bytes
from .events import CHECKPOINT_WIDTH, merge_temporary_bytes
from .parameters import parameter_count, trainable_parameters, trained_tensors
from .recipe import Recipe
from .states import hidden_width, tensor_state_bytes

# A process with torch, its libraries and a CUDA context: 2271 MiB (pytorch-2023-106511).
PROCESS = 2271 * 1048576

# Weights are saved in files of up to this size; what lies on the card is copied to the host a file at a time
# (transformers modeling_utils.py save_pretrained, max_shard_size; safetensors 0.8.0 torch.py _flatten_as_ptr).
SHARD = 50 * 10**9


def host_bytes(arch: Architecture, recipe: Recipe) -> dict[str, int]:
    """Bytes of the host's memory by occasion; `peak` is the largest.

    mapped   the weight files, which the system maps and may drop: free memory of that size spares reading them twice
    """
    training = PROCESS + offloaded_bytes(arch, recipe)
    found = {
        "load": PROCESS + load_bytes(arch, recipe),
        "training": training,
        "save": training + save_bytes(arch, recipe),
        "resume": training + resume_bytes(arch, recipe),
    }
    if recipe.adapted:
        found["merge"] = PROCESS + merge_bytes(arch, recipe)
    peak = 0
    for name in found:
        peak = max(peak, found[name])
    found["peak"] = peak
    found["mapped"] = CHECKPOINT_WIDTH * parameter_count(arch)
    return found


def load_bytes(arch: Architecture, recipe: Recipe) -> int:
    """Weights that loading makes in the host's memory.

    safetensors maps the files, and from_pretrained takes the tensors from there: in their own dtype they need no
    memory of the process, cast to float32 they need all of it until the model moves to the card. Quantised weights are
    made on the card, tensor by tensor.
    Source: transformers modeling_utils.py _load_pretrained_model, core_model_loading.py _materialize_copy.
    """
    if recipe.method == "qlora" or recipe.weight_bytes == CHECKPOINT_WIDTH:
        return 0
    return recipe.weight_bytes * parameter_count(arch)


def offloaded_bytes(arch: Architecture, recipe: Recipe) -> int:
    """What training keeps in the host's memory instead of the card's."""
    size = paged_bytes(arch, recipe)
    if recipe.checkpoint_offload:
        size += recipe.tokens * hidden_width(recipe) * arch.hidden_size * len(arch.layers)
    return size


def paged_bytes(arch: Architecture, recipe: Recipe) -> int:
    """States of a paged optimizer, all of which can be in the host's memory when the card is full.

    Source: bitsandbytes optim/optimizer.py get_state_buffer.
    """
    if not recipe.optim.startswith("paged"):
        return 0
    size = 0
    for tensors in trained_tensors(arch, recipe):
        resident = tensor_state_bytes(tensors, recipe.optim, tensors.width)
        size += tensors.copies * (tensor_file_bytes(tensors, recipe.optim, tensors.width) - resident)
    return size


def save_bytes(arch: Architecture, recipe: Recipe) -> int:
    """A checkpoint is written: a file of weights at a time, then the optimizer's states tensor by tensor."""
    largest = 0
    for tensors in trained_tensors(arch, recipe):
        largest = max(largest, 4 * tensors.count)
    return max(min(trained_file_bytes(arch, recipe), SHARD), largest)


def resume_bytes(arch: Architecture, recipe: Recipe) -> int:
    """The optimizer's file, read as a whole; bitsandbytes copies it once more.

    Source: transformers trainer.py _load_optimizer_and_scheduler; bitsandbytes optim/optimizer.py load_state_dict.
    """
    size = optimizer_file_bytes(arch, recipe)
    return 2 * size if "8bit" in recipe.optim or "32bit" in recipe.optim or "paged" in recipe.optim else size


def merge_bytes(arch: Architecture, recipe: Recipe) -> int:
    """Merging without a card: the 16-bit base model, the adapters in float32, and the largest product twice.

    Source: peft tuners/lora/layer.py, Linear.merge and get_delta_weight; peft_model.py from_pretrained.
    """
    return (
        CHECKPOINT_WIDTH * parameter_count(arch)
        + 4 * trainable_parameters(arch, recipe)
        + merge_temporary_bytes(arch, recipe)
    )
