"""What stands behind a tensor peak: the simulation of the real step, published runs, or arithmetic alone."""

from __future__ import annotations

from .recipe import Recipe

# Method, loss and kernels of the published runs that count for our error; tests/test_measurements.py compares. Runs of
# other model code do not stand behind a figure, however near they come.
PUBLISHED = (
    "full standard none",
    "full standard foak",
    "full fused foak",
    "lora standard none",
    "lora standard foak",
    "lora fused foak",
    "qlora nf4 standard none",
    "qlora nf4 standard foak",
    "qlora nf4 fused foak",
    "full standard foak fsdp1",
    "full fused foak fsdp1",
    "lora standard none fsdp1",
    "lora standard foak fsdp1",
    "lora fused foak fsdp1",
    "qlora nf4 standard none fsdp1",
    "qlora nf4 standard foak fsdp1",
    "qlora nf4 fused foak fsdp1",
)


def evidence_for(recipe: Recipe) -> str:
    """ "oracle", "measured" or "arithmetic".

    The simulation runs the standard loss, TRL's in tiles and accumulation with Transformers' own modules, on one card;
    published runs, beside those, FOAK's, and FSDP's first version.
    """
    plain = (
        recipe.quantization in ("nf4", "fp4")
        and not recipe.use_dora
        and not recipe.modules_to_save
        and not recipe.checkpoint_offload
        and (recipe.optim == "adamw_torch_fused" or recipe.optim == "adamw_torch")
        and recipe.base_dtype != "float16"
        and not recipe.quantized_inputs_kept
    )
    if recipe.objective != "sft":
        return preference_evidence(recipe, plain)
    if not plain or recipe.offload_params or recipe.offload_optimizer:
        return "arithmetic"
    published = recipe.gradient_accumulation_steps == 1 and settings(recipe) in PUBLISHED
    if recipe.parallelism != "none":
        divided = recipe.num_gpus > 1 and (recipe.method != "qlora" or recipe.quant_storage != "uint8")
        return "measured" if divided and published else "arithmetic"
    today = recipe.transformers == "5" and recipe.kbit_tables == "float32" and not recipe.use_reentrant
    if today and recipe.loss != "fused" and recipe.kernels == "none":
        return "oracle"
    return "measured" if published else "arithmetic"


def preference_evidence(recipe: Recipe, plain: bool) -> str:
    """The simulation has DPO's and GRPO's step on one card with Transformers' modules, whoever generates elsewhere.

    It has no quantised reference model, and vLLM's share of the card is what somebody set, not what it needs.
    Accumulation is simulated, because all completions of a step are generated at once.
    """
    today = recipe.transformers == "5" and recipe.kbit_tables == "float32" and not recipe.use_reentrant
    alone = recipe.parallelism == "none" and not recipe.offload_params and not recipe.offload_optimizer
    second = recipe.reference == "model" and recipe.method == "qlora"
    simulated = plain and today and alone and not second and recipe.kernels == "none"
    return "oracle" if simulated and recipe.generation != "vllm" else "arithmetic"


def settings(recipe: Recipe) -> str:
    """Method, quantisation, loss, kernels and strategy in words, by which published runs are grouped."""
    method = recipe.method
    if method == "qlora":
        method = method + " " + recipe.quantization
    strategy = ""
    if recipe.parallelism == "fsdp":
        strategy = " fsdp1" if recipe.fsdp_version == 1 else " fsdp2"
    elif recipe.parallelism != "none":
        strategy = " " + recipe.parallelism
    return method + " " + recipe.loss + " " + recipe.kernels + strategy
