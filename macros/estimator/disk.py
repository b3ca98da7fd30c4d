"""Disk space of one run: the download, the checkpoints, the merged model, the tokenised dataset.

Sources: transformers 5.24.0 trainer.py _save_checkpoint; peft 0.21.2 peft_model.py save_pretrained; accelerate 1.15.0;
DeepSpeed 0.19.6; datasets 5.2.0; TRL 1.16.0.
"""

from __future__ import annotations

from .architecture import Architecture
from .events import CHECKPOINT_WIDTH
from .parameters import Tensors, parameter_count, trainable_parameters, trained_tensors
from .recipe import Recipe
from .sharding import stored
from .states import master_bytes, tensor_state_bytes

# Checkpoints that stay, where nobody says: the newest and the best. Trainer itself keeps all (save_total_limit None).
CHECKPOINTS_KEPT = 2
# Trainer deletes an old checkpoint only when the new one is written (trainer.py _save_checkpoint, rotate_checkpoints).
BEING_WRITTEN = 1

# A token in TRL's prepared dataset: input_ids as int32 (datasets arrow_writer.py OptimizedTypedSequence), labels as int64.
TOKEN_BYTES = 12


def disk_bytes(arch: Architecture, recipe: Recipe, kept: int, dataset_tokens: int) -> dict[str, int]:
    """Bytes on disk by what they are for, and their sum.

    download     the model as it is published, in 16 bits
    weights      what a checkpoint holds without what only resuming needs (save_only_model)
    checkpoint   one checkpoint
    checkpoints  those that stay, and the one that is being written
    merged       adapters merged into the 16-bit model; 0 where the whole model is trained
    """
    weights = trained_file_bytes(arch, stored(recipe))
    checkpoint = weights * model_files(recipe) + optimizer_file_bytes(arch, recipe)
    found = {
        "download": CHECKPOINT_WIDTH * parameter_count(arch),
        "weights": weights,
        "checkpoint": checkpoint,
        "checkpoints": checkpoint * (kept + BEING_WRITTEN),
        "merged": CHECKPOINT_WIDTH * parameter_count(arch) if recipe.adapted else 0,
        "dataset": TOKEN_BYTES * dataset_tokens,
    }
    found["total"] = found["download"] + found["checkpoints"] + found["merged"] + found["dataset"]
    return found


def model_files(recipe: Recipe) -> int:
    """How often a checkpoint holds the weights.

    Trainer's own file; beside it that of FSDP 1 with a full state dict, its default, and that of ZeRO-1 and 2. FSDP 2
    saves shards instead. Source: transformers trainer.py save_model, _save_optimizer_and_scheduler; accelerate
    utils/dataclasses.py set_state_dict_type; DeepSpeed runtime/engine.py save_checkpoint.
    """
    if recipe.parallelism == "fsdp":
        return 2 if recipe.fsdp_version == 1 else 1
    return 2 if recipe.parallelism == "zero1" or recipe.parallelism == "zero2" else 1


def trained_file_bytes(arch: Architecture, recipe: Recipe) -> int:
    """The weights of a checkpoint: the whole model, or the adapters and the modules that are trained with them."""
    if not recipe.adapted:
        return recipe.weight_bytes * parameter_count(arch)
    total = 0
    for tensors in trained_tensors(arch, recipe):
        total += tensors.count * tensors.width * tensors.copies
    return total


def optimizer_file_bytes(arch: Architecture, recipe: Recipe) -> int:
    """The optimizer's states in a checkpoint, and the float32 weights where it works on such copies: DeepSpeed does."""
    kept = stored(recipe)
    zero = recipe.parallelism.startswith("zero")
    total = 4 * trainable_parameters(arch, recipe) if zero else master_bytes(arch, recipe)
    for tensors in trained_tensors(arch, kept):
        width = 4 if zero or recipe.precision == "bf16-master" else tensors.width
        total += tensors.copies * tensor_file_bytes(tensors, recipe.optim, width)
    return total


def tensor_file_bytes(tensors: Tensors, optim: str, width: int) -> int:
    """The states of one trained tensor, paged ones too: they are saved like all others."""
    return tensor_state_bytes(tensors, optim.removeprefix("paged_"), width)
