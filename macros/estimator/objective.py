"""What a run trains towards: the keys of supervised fine-tuning, DPO and GRPO, and what contradicts what.

Defaults are those of TRL 1.16.0: trainer/dpo_trainer.py, trainer/grpo_config.py.
"""

from __future__ import annotations

from .checks import choice, count, out_of_scope, refuse, share
from .wording import shown

OBJECTIVES = ("sft", "dpo", "grpo")
REFERENCES = ("none", "model", "adapter", "precomputed")
GENERATIONS = ("none", "transformers", "vllm", "vllm-server")

# GRPOConfig of TRL 1.16.0: num_generations, vllm_gpu_memory_utilization; max_prompt_length of TRL 0.x, which had one.
GROUP_SIZE = 8
VLLM_SHARE = 0.3
PROMPT_LENGTH = 512


def objective_of(keys: dict[str, object]) -> str:
    """What is trained towards; DPO and GRPO have a loss of their own, and no other kernels for it."""
    value = keys.get("objective")
    if isinstance(value, str) and value not in OBJECTIVES and out_of_scope(value):
        raise ValueError(f"objective {shown(value)}: {out_of_scope(value)} is not modelled; it is one of {', '.join(OBJECTIVES)}")
    objective = choice(keys, "objective", OBJECTIVES, "sft")
    if objective == "sft":
        return objective
    if keys.get("loss") == "fused":
        raise ValueError(f"loss fused belongs to objective sft; the log-probabilities of {objective} come from standard or chunked")
    if keys.get("kernels", "none") not in ("none", "liger"):
        raise ValueError(f"kernels {shown(keys['kernels'])} are modelled for objective sft alone; {objective} has none or liger")
    if keys.get("keep_outputs"):
        raise ValueError(f"keep_outputs true belongs to objective sft; the trainer of {objective} releases them")
    if objective == "dpo" and keys.get("lora_dropout", 0) != 0:
        raise ValueError("lora_dropout does not apply here; TRL's DPOTrainer switches dropout off (disable_dropout)")
    refuse(keys, ("trained_token_share",), objective == "dpo" or keys.get("trained_token_share") == 1, "objective sft and dpo")
    return objective


def reference_of(keys: dict[str, object], objective: str, adapted: bool) -> str:
    """Whose log-probabilities the policy is held against; TRL asks the base model below an adapter by itself."""
    own = "adapter" if adapted else "model"
    reference = choice(keys, "reference", REFERENCES, own if objective == "dpo" else "none")
    if objective == "sft" and reference != "none":
        raise ValueError("reference does not apply here; it belongs to objective dpo and grpo")
    if objective == "dpo" and reference == "none":
        raise ValueError("reference none contradicts objective dpo; it is model, adapter or precomputed")
    if objective == "grpo" and reference == "precomputed":
        raise ValueError("reference precomputed contradicts objective grpo, whose completions do not exist before; it is none, model or adapter")
    if reference == "adapter" and not adapted:
        raise ValueError("reference adapter belongs to method lora and qlora; full fine-tuning needs model or precomputed")
    return reference


def prompt_length_of(keys: dict[str, object], sequence_length: int) -> int:
    """Tokens before the completion; 512 of them, or half of a shorter sequence."""
    if sequence_length < 2:
        raise ValueError(f"sequence_length {sequence_length} has no room for a prompt and a completion")
    value = count(keys, "prompt_length", PROMPT_LENGTH if sequence_length > PROMPT_LENGTH else max(1, sequence_length // 2))
    if value >= sequence_length:
        raise ValueError(f"prompt_length {value} leaves nothing to generate of sequence_length {sequence_length}")
    return value


def group_size_of(keys: dict[str, object], completions: int) -> int:
    """Completions of one prompt: a divisor of those of an optimizer step on all cards; the largest up to 8."""
    if "num_generations" in keys:
        value = count(keys, "num_generations", GROUP_SIZE)
        if completions % value:
            product = "micro_batch_size × gradient_accumulation_steps × num_gpus"
            raise ValueError(f"num_generations {value} must divide {product}, here {completions}")
        return value
    value = GROUP_SIZE
    while completions % value:
        value -= 1
    return value


def generation_of(keys: dict[str, object], objective: str) -> str:
    """Who writes the completions; the keys of GRPO belong to it alone."""
    generation = choice(keys, "generation", GENERATIONS, "transformers" if objective == "grpo" else "none")
    # The defaults are in every result, which can be given back as a recipe.
    for key, quiet in (("num_generations", 1), ("prompt_length", 0), ("generation", "none")):
        refuse(keys, (key,), objective == "grpo" or keys.get(key) == quiet, "objective grpo")
    if objective == "grpo" and generation == "none":
        raise ValueError("generation none contradicts objective grpo; it is transformers, vllm or vllm-server")
    return generation


def vllm_share_of(keys: dict[str, object], generation: str) -> float:
    """The share of the card that vLLM reserves beside the training."""
    if generation != "vllm":
        refuse(keys, ("vllm_memory_share",), keys.get("vllm_memory_share") == 0, "generation vllm")
        return 0.0
    taken = share(keys, "vllm_memory_share", VLLM_SHARE)
    if taken == 0:
        raise ValueError("vllm_memory_share must be above 0 under generation vllm")
    return taken
