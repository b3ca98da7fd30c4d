"""Peaks of one card outside the training step: loading, k-bit preparation, evaluation, saving, resuming, merging.

Each happens once, or now and then, while other things live than in a step; the largest of them can end a run whose
steps fit. With several cards the figures are those of the fullest. Sources: transformers 5.24.0, peft 0.21.2, bitsandbytes 0.50.2, accelerate 1.15.0, torch 2.13; see each function.
"""

from __future__ import annotations

from dataclasses import replace

from .architecture import Architecture
from .layers import Builder
from .memory import Candidate, State, input_bytes, is_masked, mask_bytes, undominated, what_counts_decide
from .head import head
from .parameters import (
    all_linears,
    embedding_weights,
    parameter_count,
    quantized_weights,
    targets,
)
from .recipe import Recipe
from .replay import Replay
from .shapes import LayerShape
from .sharding import Sharing, computed, divides, layer_bytes, root_bytes, stored
from .states import adapter_bytes, hidden_width, stream_width, table_width, weight_bytes
from .tape import CAST, Tape, Value

EVENTS = ("load", "kbit_preparation", "evaluation", "save", "resume", "merge")

# Sequences of one evaluation batch: TrainingArguments.per_device_eval_batch_size (transformers/training_args.py).
EVALUATION_BATCH = 8

# Bytes of a weight in the checkpoint that is loaded and merged: published models have 16 bits.
CHECKPOINT_WIDTH = 2


def events(arch: Architecture, recipe: Recipe) -> dict[str, int]:
    """Bytes alive on one card at the largest point of each event that this recipe has."""
    sharing = Sharing(arch, recipe)
    resting = resting_bytes(sharing)
    found = before_steps(arch, recipe, sharing)
    if recipe.objective != "grpo":  # whose evaluation generates, as its training does
        found["evaluation"] = resting + evaluation_bytes(arch, recipe, sharing)
    found["save"] = resting + save_bytes(arch, recipe)
    found["resume"] = resting + resume_bytes(recipe, sharing)
    if recipe.adapted:
        found["merge"] = merge_bytes(arch, recipe)
    return found


def before_steps(arch: Architecture, recipe: Recipe, sharing: Sharing) -> dict[str, int]:
    """Bytes alive on one card in the events that every run goes through before its first step."""
    # A reference model is loaded after the one that is trained.
    found = {"load": load_bytes(arch, recipe, sharing) + sharing.reference()}
    prepared = stored(recipe)
    if prepared.upcast and prepared.weight_bytes < 4:
        found["kbit_preparation"] = kbit_preparation_bytes(arch, prepared)
    return found


def start_bytes(arch: Architecture, recipe: Recipe) -> int:
    """The largest peak before the first step; worked out once for all batches and lengths."""
    key = ("start", recipe.structure)
    found = arch.profiles.get(key)
    if found is None:
        found = max(before_steps(arch, recipe, Sharing(arch, recipe)).values())
        arch.profiles[key] = found
    return found


def exceeding(found: dict[str, int], peak: int) -> list[str]:
    """Names of the events that need more than the step's peak."""
    return [name for name in EVENTS if found.get(name, 0) > peak]


def resting_bytes(sharing: Sharing) -> int:
    """What lives between two steps: weights, adapters, optimizer states, master weights, buckets."""
    size = sharing.weights() + sharing.reference() + sharing.adapters() + sharing.optimizer_states() + sharing.masters() + sharing.buffers
    partition = sharing.strategy == "zero2" or sharing.strategy == "zero3"
    return size + (sharing.standing if partition else 0)


def save_bytes(arch: Architecture, recipe: Recipe) -> int:
    """What saving adds: one tensor after the other goes to the host, gathered first where it is divided.

    Of a model whose adapters are trained only these are saved. Source: torch/serialization.py _save; accelerate
    utils/fsdp_utils.py save_fsdp_model; DeepSpeed runtime/engine.py _zero3_consolidated_16bit_state_dict.
    """
    return gathered_bytes(arch, recipe) if divides(recipe) and not recipe.adapted else 0


def resume_bytes(recipe: Recipe, sharing: Sharing) -> int:
    """What resuming adds: with DDP every card reads the optimizer's file, and bitsandbytes copies what it has read.

    One card reads it into the host's memory first; before transformers 4.28 it read it onto the card, where the states
    were twice for a moment. Source: trainer.py _load_optimizer_and_scheduler; bitsandbytes optim/optimizer.py
    load_state_dict; torch optim/optimizer.py load_state_dict, which takes over what is on the right device.
    """
    return sharing.optimizer_states() if recipe.parallelism == "ddp" and by_bitsandbytes(recipe.optim) else 0


def by_bitsandbytes(optim: str) -> bool:
    """Whether bitsandbytes has the optimizer."""
    return "8bit" in optim or "32bit" in optim or optim.startswith("paged")


def loaded_bytes(arch: Architecture, recipe: Recipe) -> int:
    """Bytes of the whole model's weights as they were loaded, before the k-bit preparation."""
    if recipe.method != "qlora":
        return weight_bytes(arch, recipe)
    return weight_bytes(arch, replace(recipe, prepare_kbit=False))


def load_bytes(arch: Architecture, recipe: Recipe, sharing: Sharing) -> int:
    """Loading: the weights, and beside them what the last large one goes through.

    FSDP and ZeRO-3 divide a model that is not quantised piece by piece, each of them whole for a moment. A quantised
    one is whole on every card first since Transformers 5, which quantises while it loads; version 4 moved each matrix to
    the host's memory once it was quantised.
    Source: accelerate utils/fsdp_utils.py fsdp2_prepare_model, fsdp2_load_full_state_dict; transformers
    integrations/deepspeed.py _load_state_dict_into_zero3_model; transformers 4.45.2 modeling_utils.py
    _load_state_dict_into_meta_model.
    """
    divided = recipe.parallelism == "zero3" or recipe.parallelism == "fsdp"
    if divided and divides(recipe) and (recipe.method != "qlora" or recipe.transformers != "5"):
        return sharing.weights() + gathered_bytes(arch, recipe)
    return whole_load_bytes(arch, stored(recipe))


def gathered_bytes(arch: Architecture, recipe: Recipe) -> int:
    """The largest piece that is whole at a time: a tensor; for FSDP 1 a unit, of which the tables are one."""
    kept = stored(recipe)
    if recipe.parallelism == "fsdp" and recipe.fsdp_version == 1:
        embedding, tail = root_bytes(arch, kept)
        return max(embedding + tail, max(layer_bytes(arch, kept, shape) for shape, _ in arch.layer_counts()))
    if recipe.parallelism != "fsdp" and recipe.parallelism != "zero3":
        return 0
    largest = embedding_weights(arch) * table_width(kept)
    for linear, _ in all_linears(arch):
        largest = max(largest, linear.weight * stream_width(kept))
    return largest


def whole_load_bytes(arch: Architecture, recipe: Recipe) -> int:
    """Loading onto one card.

    Transformers loads tensor by tensor where it quantises: the 16-bit matrix, its 4-bit form and its block constants
    exist together. Single experts are stacked, the halves of gate and up joined after that, so that one layer's
    exist twice. A cast to float32 happens in the host's memory.
    Source: transformers core_model_loading.py convert_and_load_state_dict_in_model, MergeModulelist, Concatenate;
    integrations/bitsandbytes.py Bnb4bitQuantize; bitsandbytes functional.py quantize_4bit.
    """
    extra = 0
    if recipe.four_bit or (recipe.method == "qlora" and recipe.quantization == "int8"):
        for linear, _ in quantized_weights(arch, recipe):
            if recipe.four_bit:
                # Its constants in float32 before they are quantised themselves, and their distance from the mean.
                extra = max(extra, CHECKPOINT_WIDTH * linear.weight + 2 * 4 * ((linear.weight + 63) // 64))
            else:
                # Int8Params casts it to float16 first.
                extra = max(extra, 2 * CHECKPOINT_WIDTH * linear.weight)
    if recipe.transformers == "5":
        for linear, _ in all_linears(arch):
            if linear.name == "experts.gate_up_proj":
                extra = max(extra, recipe.weight_bytes * linear.weight)
    return loaded_bytes(arch, recipe) + extra


def kbit_preparation_bytes(arch: Architecture, recipe: Recipe) -> int:
    """prepare_model_for_kbit_training: each tensor that is not quantised becomes float32, the old one still there.

    The order is that of parameters(): embeddings, layers, head. Source: peft/utils/other.py.
    """
    before = loaded_bytes(arch, recipe)
    after = weight_bytes(arch, replace(recipe, kbit_tables="float32"))
    table, narrow = embedding_weights(arch), recipe.weight_bytes
    at_embedding = before + 4 * table
    at_head = after if arch.tie_word_embeddings else after + narrow * table
    experts = 0
    if recipe.transformers == "5":
        for linear, _ in all_linears(arch):
            if linear.experts:
                experts = max(experts, linear.weight)
    head_to_come = 0 if arch.tie_word_embeddings else (4 - narrow) * table
    return max(at_embedding, at_head, after - head_to_come + narrow * experts)


def merge_bytes(arch: Architecture, recipe: Recipe) -> int:
    """Merging on the card: the 16-bit base model, the adapters, and the largest product B·A with its scaled copy.

    Source: peft/tuners/lora/layer.py, Linear.merge and get_delta_weight.
    """
    return CHECKPOINT_WIDTH * parameter_count(arch) + adapter_bytes(arch, recipe) + merge_temporary_bytes(arch, recipe)


def merge_temporary_bytes(arch: Architecture, recipe: Recipe) -> int:
    """The product of the largest adapter in the adapter's dtype, and its scaled copy."""
    names, largest = targets(arch, recipe), 0
    for linear, _ in all_linears(arch):
        if linear.name in names:
            largest = max(largest, linear.weight)
    return 2 * recipe.adapter_bytes * largest


def evaluation_bytes(arch: Architecture, recipe: Recipe, sharing: Sharing) -> int:
    """What evaluating the loss adds: a forward pass of 8 sequences without gradients.

    Trainer's default batch is 8 whatever the training batch is, and without compute_metrics only the loss is kept
    (trainer.py evaluate, prediction_step).
    """
    setting = replace(
        computed(recipe),
        micro_batch_size=EVALUATION_BATCH,
        gradient_accumulation_steps=1,
        gradient_checkpointing=False,
        checkpoint_offload=False,
        use_reentrant=False,
        lora_dropout=0.0,
    )
    tokens = setting.tokens
    square = tokens * setting.sequence_length
    ids, tables = input_bytes(arch, setting)
    layers, casts = layer_candidates(arch, setting)
    largest = largest_of(layers, tokens, square) + sharing.forward_layers()
    head_and_loss = largest_of(loss_candidates(arch, setting), tokens, square) + casts + sharing.loss_forward()
    return ids + tables + mask_bytes(arch, setting) + max(largest, head_and_loss)


def largest_of(candidates: list[Candidate], tokens: int, square: int) -> int:
    """Bytes of the largest state for a batch and a length."""
    return max(candidate[0] * tokens + candidate[1] + candidate[2] * square for candidate in candidates)


def layer_candidates(arch: Architecture, setting: Recipe) -> tuple[list[Candidate], int]:
    """The states while a decoder layer runs without gradients, and the casts that all layers leave.

    Made once for all batches and lengths that share them, and for all losses.
    """
    key = ("evaluation", replace(setting, loss="standard").structure, *what_counts_decide(arch, setting))
    found = arch.profiles.get(key)
    if found is None:
        found = (undominated(layer_states(arch, setting)), layer_casts(arch, setting))
        arch.profiles[key] = found
    return found


def layer_states(arch: Architecture, setting: Recipe) -> list[State]:
    """All states while a decoder layer runs."""
    # The model's forward refers to the embeddings' output while the layers run.
    states, shared = [], hidden_width(setting) * arch.hidden_size
    if arch.per_layer_size:
        shared += stream_width(setting) * arch.per_layer_size * len(arch.layers)
    for shape, _ in arch.layer_counts():
        if shape.stores:
            shared += 2 * stream_width(setting) * shape.key_value_size
    casts = layer_casts(arch, setting)
    for shape, _ in arch.layer_counts():
        tape, source = layer_tape(arch, setting, shape)
        for state in states_without_gradients(tape, source):
            state.plus("weight_casts", 0, casts - tape.cached_casts, 0)
            states.append(state.plus("layer_activations", shared, 0, 0))
    return states


def layer_casts(arch: Architecture, setting: Recipe) -> int:
    """Bytes of the casts of trained weights, which autocast keeps until the whole forward is over."""
    total = 0
    for shape, count in arch.layer_counts():
        total += layer_tape(arch, setting, shape)[0].cached_casts * count
    return total


def layer_tape(arch: Architecture, setting: Recipe, shape: LayerShape) -> tuple[Tape, Value]:
    """A decoder layer written down, and its input."""
    tape = Tape(setting.autocast)
    tape.tag = "layer"
    source = tape.tensor(arch.hidden_size, hidden_width(setting), True)
    Builder(arch, setting, tape, shape, is_masked(arch, setting, shape)).decoder_layer(source)
    tape.hold(source)  # the loop over the layers has it until the layer returns
    return tape, source


def head_tape(arch: Architecture, setting: Recipe) -> tuple[Tape, Value, Value | None]:
    """Head and loss written down, their input, and the logits if the model returns them."""
    tape = Tape(setting.autocast)
    source = tape.tensor(arch.hidden_size, hidden_width(setting), True)
    return tape, source, head(Builder(arch, setting, tape, arch.layers[-1], False), source, False)


def loss_candidates(arch: Architecture, setting: Recipe) -> list[Candidate]:
    """The states while head and loss run without gradients, made once for all batches and lengths that share them."""
    key = ("evaluation of the loss", setting.structure)
    found = arch.profiles.get(key)
    if found is None:
        tape, source, logits = head_tape(arch, setting)
        states = states_without_gradients(tape, source)
        if logits is not None and setting.autocast and logits.width != 4:
            # accelerate's ConvertOutputsToFp32 copies the logits while the originals are still referenced.
            states.append(State({}).plus("logits", (logits.width + 4) * arch.vocab_size, 0, 0))
        found = undominated(states)
        arch.profiles[key] = found
    return found


def states_without_gradients(tape: Tape, source: Value, tags: tuple[str, ...] = ()) -> list[State]:
    """The states of a forward pass in which autograd keeps nothing, of all its parts or of those with these tags."""
    for op in tape.ops:
        op.saved = []
        if op.output.kind == CAST and tape.autocast and op.inputs[0].requires_grad:
            op.output.last_use = len(tape.ops) - 1
    replay = Replay(tape, False)
    replay.forward(source, False)
    found = []
    for tag in replay.peaks.states:
        if tags and tag not in tags:
            continue
        found += [State({}).plus_kinds(state[3]) for state in replay.peaks.states[tag]]
    return found


def kept_logits_bytes(arch: Architecture, recipe: Recipe) -> int:
    """Bytes of logits for each token of the evaluation set, which stay on the card if compute_metrics asks for them.

    float32 under autocast, because accelerate converts outputs. With eval_accumulation_steps they move to the host's
    memory in between. Source: trainer.py evaluation_loop.
    """
    return arch.vocab_size * (4 if recipe.autocast or recipe.precision == "fp32" else recipe.weight_bytes)
