"""What preference training does without gradients: the reference's log-probabilities, and GRPO's completions.

DPO asks the reference while it holds all that the policy's forward kept; GRPO asks it, and generates, before the first
forward of a step, when nothing but weights and states is there. Both switch checkpointing off for that.
Source: TRL 1.16.0 trainer/dpo_trainer.py _compute_loss, trainer/grpo_trainer.py _generate_single_turn and
_generate_and_score_completions; transformers 5.24.0 generation/utils.py, cache_utils.py.
"""

from __future__ import annotations

from dataclasses import replace

from .architecture import Architecture
from .compute import forward_flops, plus_flops
from .events import head_tape, layer_candidates, layer_tape, states_without_gradients
from .memory import Candidate, Moment, input_bytes, is_masked, mask_bytes, undominated
from .parameters import embedding_weights
from .recipe import Recipe
from .sharding import Sharing, computed
from .shapes import LayerShape
from .states import stream_width, table_width

# A token's id and its place in the mask, as int64.
TOKEN_BYTES = 16


def with_phases(arch: Architecture, recipe: Recipe, by_moment: dict[str, Moment]) -> dict[str, Moment]:
    """The moments of a step with those that run without gradients; `by_moment` has what lives beside them."""
    if recipe.objective == "sft":
        return by_moment
    sharing = Sharing(arch, recipe)
    found = {}
    for name in by_moment:
        if name == "log_probs" and (recipe.objective == "dpo" or takes_log_probs(recipe)):
            found[name] = plus(by_moment[name], log_probs_parts(arch, recipe, sharing))
        elif name == "generation" and recipe.generation == "transformers":
            found[name] = plus(by_moment[name], generation_parts(arch, recipe, sharing))
        elif name != "log_probs" and name != "generation":
            found[name] = by_moment[name]
    return found


def takes_log_probs(recipe: Recipe) -> bool:
    """Whether GRPO takes log-probabilities before its step: of a reference, and of what vLLM sampled, to correct for it."""
    return passes_without_gradients(recipe) > 0


def plus(moment: Moment, parts: dict[str, int]) -> Moment:
    """A moment with more alive."""
    total, sums = moment.total, dict(moment.parts)
    for part in parts:
        sums[part] = sums.get(part, 0) + parts[part]
        total += parts[part]
    return Moment(total, sums)


def silent(recipe: Recipe) -> Recipe:
    """The recipe of a forward without gradients."""
    return replace(
        computed(recipe),
        gradient_accumulation_steps=1,
        gradient_checkpointing=False,
        checkpoint_offload=False,
        use_reentrant=False,
        lora_dropout=0.0,
    )


def scorer(recipe: Recipe) -> Recipe:
    """The recipe of the forward that takes log-probabilities: what vLLM sampled is scored by the policy, adapters on.

    TRL does not freeze a second model, so that autocast keeps its casts of float32 weights until its forward is over.
    """
    setting = silent(recipe)
    sampled = recipe.generation == "vllm" or recipe.generation == "vllm-server"
    if not recipe.adapted or sampled or recipe.reference == "none":
        return setting
    bare = replace(setting, target_modules=(), modules_to_save=(), use_dora=False)
    if recipe.reference == "adapter":
        return bare
    return replace(bare, method="full") if recipe.method == "lora" else replace(bare, prepare_kbit=False)


def log_probs_parts(arch: Architecture, recipe: Recipe, sharing: Sharing) -> dict[str, int]:
    """The largest point of a forward that takes log-probabilities; with its adapter off a base model is bare."""
    setting = scorer(recipe)
    layers, casts = layer_candidates(arch, setting)
    decoding = largest(layers, setting)
    decoding["gathered_shards"] = sharing.forward_layers()
    inside, after = scoring_candidates(arch, setting)
    head = largest(inside, setting)
    head["weight_casts"] = head.get("weight_casts", 0) + casts
    head["gathered_shards"] = sharing.loss_forward()
    best = decoding if total(decoding) > total(head) else head
    if after:
        scoring = largest(after, setting)
        best = scoring if total(scoring) > total(best) else best
    return best


def scoring_candidates(arch: Architecture, setting: Recipe) -> tuple[list[Candidate], list[Candidate]]:
    """The states of the head while the model's forward runs, and after it, when autocast's cache is gone.

    TRL's tiled head is a part of the forward; log-probabilities of all logits are taken after it.
    """
    key = ("log-probabilities", setting.structure)
    found = arch.profiles.get(key)
    if found is None:
        tape, source, _ = head_tape(arch, setting)
        if setting.loss == "chunked":
            found = (undominated(states_without_gradients(tape, source)), [])
        else:
            inside = undominated(states_without_gradients(tape, source, ("forward layer", "forward head")))
            tape, source, _ = head_tape(arch, setting)
            found = (inside, undominated(states_without_gradients(tape, source, ("forward loss", "forward kept"))))
        arch.profiles[key] = found
    return found


def log_probs_flops(arch: Architecture, recipe: Recipe) -> float:
    """FLOPs of the forwards of one optimizer step that take log-probabilities without gradients; generation is not counted."""
    if recipe.objective == "sft" or recipe.reference == "precomputed":
        return 0.0
    setting = scorer(recipe)
    key = ("FLOPs of log-probabilities", setting.structure)
    form = arch.profiles.get(key)
    if form is None:
        form = forward_flops(head_tape(arch, setting)[0])
        for shape, count in arch.layer_counts():
            form = plus_flops(form, forward_flops(layer_tape(arch, setting, shape)[0]), count)
        arch.profiles[key] = form
    tokens = float(recipe.tokens)
    one = float(form[0]) * tokens + float(form[1]) + float(form[2]) * tokens * recipe.sequence_length
    passes = passes_without_gradients(recipe) * recipe.gradient_accumulation_steps
    return float(one) * passes


def passes_without_gradients(recipe: Recipe) -> int:
    """How often a micro-batch's log-probabilities are taken without gradients: by the reference, and after vLLM."""
    sampled = recipe.generation == "vllm" or recipe.generation == "vllm-server"
    return (1 if recipe.reference == "model" or recipe.reference == "adapter" else 0) + (1 if sampled else 0)


def largest(candidates: list[Candidate], setting: Recipe) -> dict[str, int]:
    """The parts of the largest state for a batch and a length."""
    tokens = setting.tokens
    square = tokens * setting.sequence_length
    best, most = candidates[0], -1
    for candidate in candidates:
        size = candidate[0] * tokens + candidate[1] + candidate[2] * square
        if size > most:
            best, most = candidate, size
    return {part: per_token * tokens + fixed + per_square * square for part, per_token, fixed, per_square in best[3]}


def total(parts: dict[str, int]) -> int:
    """The sum of some parts."""
    return sum(parts.values())


def generation_parts(arch: Architecture, recipe: Recipe, sharing: Sharing) -> dict[str, int]:
    """generate() for all completions of an optimizer step, at the larger of its two ends.

    At the beginning the prompts go through the layers as one batch; at the end the cache is full, and a layer joins
    the last token's keys with those before it. Of logits there is one position per sequence.
    """
    batch = recipe.generated_sequences
    prompts = replace(
        silent(recipe),
        objective="sft",
        reference="none",
        micro_batch_size=batch,
        sequence_length=max(1, recipe.sequence_length - recipe.completion_length),
        loss="standard",
    )
    shared = gathered_while_generating(recipe, sharing)
    layers, casts = layer_candidates(arch, prompts)
    first = largest(layers, prompts)
    first["weight_casts"] = first.get("weight_casts", 0) + casts
    first["kv_cache"] = cache_bytes(arch, prompts, batch, prompts.sequence_length)
    first["inputs_and_buffers"] = input_bytes(arch, prompts)[1] + mask_bytes(arch, prompts)
    last = {"kv_cache": cache_bytes(arch, prompts, batch, recipe.sequence_length)}
    last["layer_activations"] = joined_bytes(arch, prompts, batch, recipe.sequence_length)
    last["weight_casts"] = casts
    head = {"kv_cache": last["kv_cache"], "weight_casts": casts + head_cast_bytes(arch, prompts)}
    head["logits"] = batch * arch.vocab_size * (2 if prompts.autocast else prompts.weight_bytes)
    sampling = {"kv_cache": last["kv_cache"], "logits": sampled_logits_bytes(arch, prompts, batch)}
    best = first
    for parts in (last, head, sampling):
        if total(parts) > total(best):
            best = parts
    best["gathered_shards"] = shared
    best["inputs_and_buffers"] = best.get("inputs_and_buffers", 0) + TOKEN_BYTES * batch * recipe.sequence_length
    return best


def gathered_while_generating(recipe: Recipe, sharing: Sharing) -> int:
    """ZeRO-3 gathers all weights for the whole generation (ds3_gather_for_generation); FSDP layer by layer."""
    if recipe.parallelism == "zero3" and sharing.divided:
        return sharing.gatherable()
    return sharing.forward_layers()


def head_cast_bytes(arch: Architecture, setting: Recipe) -> int:
    """The head's weight in bfloat16, where autocast has to cast a float32 one."""
    return 2 * embedding_weights(arch) if setting.autocast and table_width(setting) == 4 else 0


def sampled_logits_bytes(arch: Architecture, setting: Recipe, batch: int) -> int:
    """Logits of one position: the model's, a float32 copy, and the probabilities that are sampled from."""
    width = 4 if setting.autocast else setting.weight_bytes
    return batch * arch.vocab_size * (width + 4 + 4)


def cache_bytes(arch: Architecture, setting: Recipe, batch: int, tokens: int) -> int:
    """Keys and values of so many tokens in all layers; what layers share is there once.

    A window keeps as many tokens as it looks back; linear attention keeps a state and the end of its convolution.
    """
    size = 0
    for shape, count in arch.layer_counts():
        if shape.keys != "shared":
            size += count * layer_cache_bytes(arch, setting, shape, batch, tokens)
    return size


def layer_cache_bytes(arch: Architecture, setting: Recipe, shape: LayerShape, batch: int, tokens: int) -> int:
    """Keys and values of one layer."""
    if shape.delta is not None:
        state = 4 * shape.delta.num_value_heads * shape.delta.key_head_dim * shape.delta.value_head_dim
        return batch * (state + compute_width(setting) * shape.delta.conv_size * shape.delta.kernel)
    if shape.attention == "sliding":
        tokens = min(tokens, max(1, arch.sliding_window - 1))
    keys, values = cached_sizes(shape)
    return batch * tokens * (keys * key_width(arch, setting) + values * compute_width(setting))


def cached_sizes(shape: LayerShape) -> tuple[int, int]:
    """Elements of keys and of values per token; latent attention caches them expanded, for every head."""
    if shape.latent is not None:
        heads = shape.num_attention_heads
        return heads * (shape.latent.nope_dim + shape.latent.rope_dim), shape.query_size
    return shape.key_value_size, shape.key_value_size


def compute_width(setting: Recipe) -> int:
    """Bytes of an element that a linear layer gives: a quantised one casts its result back to its input's dtype."""
    return 2 if setting.autocast and setting.method != "qlora" else stream_width(setting)


def key_width(arch: Architecture, setting: Recipe) -> int:
    """Bytes of an element of the keys: the rotation takes the dtype of its tables, that of the hidden states."""
    if arch.family.rotary_width:
        return compute_width(setting)
    return max(compute_width(setting), stream_width(setting))


def joined_bytes(arch: Architecture, setting: Recipe, batch: int, tokens: int) -> int:
    """The keys with the new token's, while the old ones are still there; under a mask sdpa repeats both for every head."""
    largest_layer = 0
    for shape, _ in arch.layer_counts():
        if shape.delta is not None:
            continue
        keys, values = cached_sizes(shape)
        size = keys * key_width(arch, setting)
        if is_masked(arch, setting, shape) and shape.num_attention_heads != shape.num_key_value_heads:
            size = max(size, 2 * shape.query_size * key_width(arch, setting))
        largest_layer = max(largest_layer, batch * tokens * size)
    return largest_layer
