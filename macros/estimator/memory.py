"""The bytes of a training step on one GPU, moment by moment and part by part.

A step's profile is made once for a model and the settings that decide what is alive; it holds, for each moment, the
few states that can be the largest, as forms in the number of tokens. Evaluating it for a batch and a length is a
handful of multiplications. Nothing here is fitted to measurements.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .architecture import Architecture
from .compute import plus_flops
from .parameters import embedding_weights, linears, outer_linears, parameter_count, targets, trainable_parameters
from .recipe import MASTER_GRADIENTS, OPTIMIZERS, Recipe
from .replay import Peaks
from .shapes import LayerShape
from .sharding import Sharing, computed
from .stages import decoder_stage, head_stage, input_requires_grad, inputs_stage
from .states import hidden_width, master_bytes, stream_width
from .tape import KINDS

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
    "reference_weights",
    "kv_cache",
)

# The part of each kind of tensor of tape.py, in its order.
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

MOMENTS = (
    "load",
    "forward_end",
    "loss",
    "head_backward",
    "layer_backward",
    "last_layer_backward",
    "optimizer_step",
)

# Before them: completions are generated (GRPO), and log-probabilities taken without gradients, by DPO within the step.
PHASES = ("generation", "log_probs")


@dataclass(frozen=True, slots=True)
class Moment:
    """What is alive at one moment: bytes by part, and their sum."""

    total: int
    parts: dict[str, int]


@dataclass(slots=True)
class State:
    """A state of the step: bytes by part as forms [per token, fixed, per token · length]."""

    parts: dict[str, list[int]]

    def plus(self, part: str, per_token: int, fixed: int, per_square: int) -> State:
        """The same with more of one part."""
        form = self.parts.setdefault(part, [0, 0, 0])
        form[0] += per_token
        form[1] += fixed
        form[2] += per_square
        return self

    def plus_kinds(self, live: list[int], times: int = 1) -> State:
        """The same with a replayed state, counted so many times."""
        for kind in range(KINDS):
            per_token, fixed, per_square = live[3 * kind : 3 * kind + 3]
            if per_token or fixed or per_square:
                self.plus(KIND_PARTS[kind], per_token * times, fixed * times, per_square * times)
        return self

    def copy(self) -> State:
        """A state of its own with the same forms."""
        return State({part: list(form) for part, form in self.parts.items()})

    def total(self) -> tuple[int, int, int]:
        """The form of the sum."""
        forms = self.parts.values()
        return sum(form[0] for form in forms), sum(form[1] for form in forms), sum(form[2] for form in forms)


Candidate = tuple[int, int, int, list[tuple[str, int, int, int]]]
"""A state's total form and its parts' forms, ready to be evaluated."""


def moments(arch: Architecture, recipe: Recipe, shared: Profile) -> dict[str, Moment]:
    """Bytes by part at each named moment of a step."""
    recipe = computed(recipe)
    sequence = recipe.sequence_length
    tokens = recipe.tokens
    square = tokens * sequence
    ids, tables = input_bytes(arch, recipe)
    masks = mask_bytes(arch, recipe)
    results = {}
    for name, candidates in shared.states:
        best = candidates[0]
        if len(candidates) > 1:
            most = -1
            for candidate in candidates:
                size = candidate[0] * tokens + candidate[1] + candidate[2] * square
                if size > most:
                    most = size
                    best = candidate
        total = best[0] * tokens + best[1] + best[2] * square
        parts = {}
        for part, per_token, fixed, per_square in best[3]:
            parts[part] = per_token * tokens + fixed + per_square * square
        if name != "load":
            inputs = ids
            if name != "last_layer_backward" and name != "optimizer_step":
                inputs += tables
                # Autograd does not save a mask; a checkpoint keeps it as an argument of its layer.
                if name == "forward_end" or recipe.gradient_checkpointing:
                    inputs += masks
            parts["inputs_and_buffers"] = inputs
            total += inputs
        results[name] = Moment(total, parts)
    return results


def input_bytes(arch: Architecture, recipe: Recipe) -> tuple[int, int]:
    """Token ids and labels, alive for the whole step; positions and rotary tables, alive until the layers are done."""
    size = (24 if recipe.padding else 16) * recipe.tokens
    if recipe.objective != "sft":
        # Masks of attention and completion are there even if all positions count; DPO holds its labels beside them.
        size = (24 if recipe.objective == "dpo" else 16) * recipe.tokens
    width = arch.family.rotary_width or stream_width(recipe)
    table = arch.layers[0].rotary_dim // (2 if arch.family.rotary == "chunk" else 1)
    if arch.family.rotary_tables == "kind":
        table = sum({shape.attention: shape.rotary_dim for shape, _ in arch.counts}.values())
    return size, (8 + 2 * width * table) * recipe.sequence_length


def mask_bytes(arch: Architecture, recipe: Recipe) -> int:
    """The masks that all layers of a kind share.

    transformers/masking_utils.py: eager attention takes a mask in the dtype of the hidden states; sdpa none, unless
    there is padding or a sliding window shorter than the sequence, and then a Boolean one, which without padding
    serves all sequences of the batch.
    """
    if recipe.attention == "flash" or (recipe.attention == "sdpa" and not recipe.padding and not arch.sliding_window):
        return 0
    sequence = recipe.sequence_length
    one = sequence * sequence
    if recipe.attention == "eager":
        one = recipe.tokens * sequence * stream_width(recipe)
    elif recipe.padding:
        one = recipe.tokens * sequence
    kinds = []
    for shape, _ in arch.counts:
        masked = recipe.attention == "eager" or is_masked(arch, recipe, shape)
        if masked and shape.delta is None and shape.attention not in kinds:
            kinds.append(shape.attention)
    return len(kinds) * one


def is_masked(arch: Architecture, recipe: Recipe, shape: LayerShape) -> bool:
    """Whether scaled_dot_product_attention gets an explicit mask in a layer of this shape."""
    if recipe.attention != "sdpa":
        return False
    return recipe.padding or (shape.attention == "sliding" and recipe.sequence_length >= arch.sliding_window)


# A length that is a multiple of this needs no rounding up: of rows in attention kernels, of chunks in linear attention.
LENGTH_STEP = 128


@dataclass(frozen=True, slots=True)
class Profile:
    """What all batches and lengths of a model and a recipe share.

    states   candidates by moment
    flops    FLOPs of forward and backward: per token, fixed, per token · length; none for what is no training step
    flight   bytes of the largest unit that several cards gather
    """

    states: list[tuple[str, list[Candidate]]]
    flops: list[float]
    parameters: int
    trainable_parameters: int
    flight: int = 0


def profile(arch: Architecture, recipe: Recipe) -> Profile:
    """The step's states by moment; made once for all batches and lengths that share them."""
    key = (recipe.structure, *what_counts_decide(arch, recipe))
    found = arch.profiles.get(key)
    if found is None:
        step = Step(arch, recipe)
        states = [(name, undominated(states)) for name, states in step.states().items()]
        found = Profile(
            states, step.flops(), parameter_count(arch), trainable_parameters(arch, recipe), step.sharing.flight()
        )
        arch.profiles[key] = found
    return found


def what_counts_decide(arch: Architecture, recipe: Recipe) -> tuple[object, ...]:
    """What batch, length and accumulation change beyond the number of tokens."""
    rest = recipe.sequence_length % LENGTH_STEP
    return (
        recipe.sequences > 1,
        recipe.gradient_accumulation_steps > 1,
        recipe.sequence_length >= arch.sliding_window,
        rest,
        # Rounding up is paid once per sequence.
        recipe.sequences if rest else 0,
    )


def undominated(states: list[State]) -> list[Candidate]:
    """Candidates without those that another one exceeds for every batch and length."""
    kept = []
    for state in states:
        per_token, fixed, per_square = state.total()
        if any(other[0] >= per_token and other[1] >= fixed and other[2] >= per_square for other in kept):
            continue
        kept = [
            other
            for other in kept
            if not (per_token >= other[0] and fixed >= other[1] and per_square >= other[2])
        ]
        parts = [(part, *state.parts[part]) for part in PARTS if any(state.parts.get(part, ()))]
        kept.append((per_token, fixed, per_square, parts))
    return kept


def lowest_trained_layer(arch: Architecture, recipe: Recipe) -> int:
    """The first layer whose backward runs: 0, unless adapters begin higher up and the embeddings' output has no gradient."""
    if input_requires_grad(recipe):
        return 0
    names = targets(arch, recipe)
    if any(linear.name in names for linear in outer_linears(arch)):
        return 0
    for index, shape in enumerate(arch.layers):
        if any(linear.name in names for linear in linears(arch, shape)):
            return index
    return len(arch.layers) - 1


class Step:
    """Puts the stages of a step together: what all layers keep, then the head, then layer by layer back."""

    def __init__(self, arch: Architecture, given: Recipe):
        self.arch = arch
        self.sharing = Sharing(arch, given)
        recipe = self.sharing.recipe
        self.recipe = recipe
        self.width = hidden_width(recipe)
        self.accumulating = recipe.gradient_accumulation_steps > 1
        self.input_is_leaf = (
            recipe.adapted and recipe.gradient_checkpointing and "embed_tokens" not in recipe.modules_to_save
        )
        self.head = head_stage(arch, recipe)
        self.inputs = inputs_stage(arch, recipe) if arch.per_layer_size else None
        # What lies outside of the layers does not ask for new ones.
        layers = replace(
            recipe,
            optim=OPTIMIZERS[0],
            foreach=False,
            loss="standard",
            keep_outputs=False,
            kbit_tables="float32",
            double_quant=False,
            master_gradients=MASTER_GRADIENTS[0],
            checkpoint_offload=False,
            parallelism="none",
            num_gpus=1,
            fsdp_version=2,
            offload_optimizer=False,
            offload_params=False,
            quant_storage="uint8",
            objective="sft",
            reference="none",
        )
        self.decoders = arch.decoders.setdefault((layers.structure, *what_counts_decide(arch, recipe)), {})
        self.stages = {}
        for shape, _ in arch.layer_counts():
            self.stages[shape] = self.decoder(shape, False)
        # Up to the lowest layer with something to train, layers take inputs without a gradient.
        self.lowest = lowest_trained_layer(arch, recipe)
        self.grounded = self.stages
        if recipe.adapted:
            self.grounded = {}
            for shape in arch.layers[: self.lowest + 1]:
                if shape not in self.grounded:
                    self.grounded[shape] = self.decoder(shape, True)
        self.rest = self.at_rest()

    def decoder(self, shape: LayerShape, first: bool):
        """The stage of a decoder layer, replayed once for all recipes with the same layers."""
        found = self.decoders.get((shape, first))
        if found is None:
            found = decoder_stage(self.arch, self.recipe, shape, is_masked(self.arch, self.recipe, shape), first)
            self.decoders[shape, first] = found
        return found

    def stage(self, index: int):
        """The stage of a layer."""
        shape = self.arch.layers[index]
        return self.grounded[shape] if index <= self.lowest else self.stages[shape]

    def flops(self) -> list[float]:
        """FLOPs of all stages, forwards and backwards: per token, fixed, per token · length."""
        total = plus_flops([0.0, 0.0, 0.0], self.head.flops, 1)
        if self.inputs is not None:
            total = plus_flops(total, self.inputs.flops, 1)
        above = self.arch.layers[self.lowest + 1 :]
        for shape, stage in self.stages.items():
            total = plus_flops(total, stage.flops, above.count(shape))
        for index in range(self.lowest + 1):
            total = plus_flops(total, self.stage(index).flops, 1)
        return total

    def resting(self) -> State:
        """A state to add to, with what is alive all the time."""
        return self.rest.copy()

    def between_steps(self) -> State:
        """What is alive before the first forward of a step: no gradients but those of a partition that is kept."""
        state = self.resting()
        if self.sharing.strategy != "zero2" and self.sharing.strategy != "zero3":
            state.plus("gradients", 0, -self.sharing.standing, 0)
        return state

    def at_rest(self) -> State:
        """What is alive all the time: weights, adapters, states, and gradients that accumulate."""
        arch, recipe, sharing = self.arch, self.recipe, self.sharing
        state = State({})
        state.plus("weights", 0, sharing.weights(), 0)
        state.plus("reference_weights", 0, sharing.reference(), 0)
        state.plus("adapters", 0, sharing.adapters(), 0)
        state.plus("optimizer_states", 0, sharing.optimizer_states(), 0)
        state.plus("master_weights", 0, sharing.masters(), 0)
        state.plus("gathered_shards", 0, sharing.buffers, 0)
        state.plus("gradients", 0, sharing.standing, 0)
        if recipe.precision == "bf16-master" and recipe.master_gradients == "persistent":
            state.plus("gradients", 0, master_bytes(arch, recipe), 0)
        return state

    def stack(self, state: State, layers: int) -> State:
        """Add what the lowest layers keep for their backward."""
        if self.recipe.gradient_checkpointing:
            if self.input_is_leaf and self.arch.family.residual_scale:
                # Granite scales its embeddings outside of the layer that autograd holds the output of.
                state.plus("layer_activations", self.width * self.arch.hidden_size, 0, 0)
            kept = min(layers, 1) if self.recipe.checkpoint_offload else layers
            state.plus("checkpoints", kept * self.width * self.arch.hidden_size, 0, 0)
            # Layers hand on keys and values as arguments, which every checkpoint holds.
            for index, shape in enumerate(self.arch.layers):
                if shape.stores:
                    state.plus_kinds(self.stage(index).stored if index < layers else self.stage(index).retained)
        if self.inputs is not None:
            state.plus_kinds(self.inputs.saved)
        above = self.arch.layers[self.lowest + 1 : layers]
        for shape, stage in self.stages.items():
            state.plus_kinds(stage.saved, above.count(shape))
        for index in range(min(layers, self.lowest + 1)):
            state.plus_kinds(self.stage(index).saved)
        return state

    def states(self) -> dict[str, list[State]]:
        """The states by moment."""
        arch, recipe = self.arch, self.recipe
        layers = len(arch.layers)
        hidden = self.width * arch.hidden_size
        sharing = self.sharing
        full = self.stack(self.resting(), layers)
        inside = full.copy()
        if recipe.gradient_checkpointing:
            casts = sum(self.stages[shape].casts * count for shape, count in arch.layer_counts())
            inside.plus("weight_casts", 0, casts, 0)

        def among(base: State, peaks: Peaks, tag: str) -> list[State]:
            return [base.copy().plus_kinds(live[3]) for live in peaks.states.get(tag, [])] or [base.copy()]

        forwards = inside.copy().plus("gathered_shards", 0, sharing.loss_forward(), 0)
        inside.plus("gathered_shards", 0, sharing.forward_layers(), 0)
        kept = full.copy()
        backwards = full.plus("gathered_shards", 0, sharing.loss_backward(), 0)
        result = {"load": [State({}).plus("weights", 0, sharing.weights(), 0).plus("reference_weights", 0, sharing.reference(), 0)]}
        if recipe.objective == "grpo":
            # What the phases themselves need is added by phases.py.
            result["generation"] = [self.between_steps()]
            result["log_probs"] = [self.between_steps()]
        elif recipe.objective == "dpo" and recipe.reference != "precomputed":
            result["log_probs"] = among(kept, self.head.forward, "forward kept")
        result["forward_end"] = [inside.copy().plus("layer_activations", hidden, 0, 0)]
        if not recipe.gradient_checkpointing:
            below = self.stack(self.resting(), layers - 1).plus("gathered_shards", 0, sharing.forward_layers(), 0)
            result["forward_end"] += among(below, self.stage(layers - 1).forward, "forward layer")
        result["loss"] = among(forwards, self.head.forward, "forward head")
        if recipe.objective != "sft" and recipe.loss == "standard":
            # The log-probabilities are taken when the model's forward is over, and autocast's cache with it.
            result["loss"] += among(kept.plus("gathered_shards", 0, sharing.loss_forward(), 0), self.head.forward, "forward loss")
        else:
            result["loss"] += among(forwards, self.head.forward, "forward loss")
        result["loss"] += among(backwards, self.head.backward, "backward loss")
        result["head_backward"] = among(backwards, self.head.backward, "backward head")
        result["layer_backward"] = among(backwards, self.head.backward, "backward layer") + self.layer_states(among)
        result["last_layer_backward"] = [self.embedding_state()]
        if self.inputs is not None:
            base = self.resting().plus("gathered_shards", 0, sharing.embedding_backward(), 0)
            base.plus("backward_temporaries", hidden, 0, 0).plus_kinds(self.head.saved)
            for index in range(layers):
                base.plus("gradients", 0, sharing.reduced(self.stage(index).gradients), 0)
            base.plus("gradients", 0, sharing.after_head(self.head.gradients), 0)
            result["last_layer_backward"] += among(base, self.inputs.backward, "backward inputs")
        step = self.all_gradients(sharing.step_gradients() + sharing.step_standing() - sharing.standing)
        result["optimizer_step"] = [step.plus("optimizer_temporaries", 0, sharing.temporaries(), 0)]
        return result

    def layer_states(self, among) -> list[State]:
        """Backward of the highest and of the lowest layer of each shape: saved tensors shrink while gradients grow."""
        layers = self.arch.layers
        indices = {self.lowest, len(layers) - 1}
        for shape in self.stages:
            indices.add(layers.index(shape))
            indices.add(len(layers) - 1 - layers[::-1].index(shape))
        states = []
        for index in sorted(indices, reverse=True):
            if index < self.lowest:
                continue
            base = self.resting().plus("gradients", 0, self.sharing.after_head(self.head.gradients), 0)
            base.plus("gathered_shards", 0, self.sharing.layer_backward(index), 0)
            for shape, stage in self.stages.items():
                above = stage.gradients * layers[index + 1 :].count(shape)
                base.plus("gradients", 0, self.sharing.reduced(above), 0)
            if self.sharing.keeps_inputs():
                self.stack(base, len(layers))
                # The gradient that this layer receives is that of the input above.
                base.plus("checkpoints", max(0, len(layers) - 2 - index) * self.width * self.arch.hidden_size, 0, 0)
            else:
                self.stack(base, index + 1 if self.recipe.gradient_checkpointing else index)
            self.shared_gradients(base, index)
            states += among(base.plus_kinds(self.head.saved), self.stage(index).backward, "backward layer")
        return states

    def shared_gradients(self, state: State, index: int) -> State:
        """Gradients that layers above this one left for tensors which layers share."""
        layers = self.arch.layers
        if self.inputs is not None and self.inputs.backward.states and index < len(layers) - 1:
            state.plus("backward_temporaries", self.width * self.arch.per_layer_size * len(layers), 0, 0)
        for at, shape in enumerate(layers):
            used = any(above.keys == "shared" and above.attention == shape.attention for above in layers[index + 1 :])
            if shape.stores and at <= index and used:
                state.plus("backward_temporaries", 2 * self.width * shape.key_value_size, 0, 0)
        return state

    def all_gradients(self, gradients: int) -> State:
        """The state between backward and step, with these bytes of gradients beside those that stand.

        Checkpointing makes transformers call enable_input_require_grads (modeling_utils.py): with frozen embeddings
        their output is a leaf, whose gradient stays until the step is over.
        """
        state = self.resting().plus("gradients", 0, gradients, 0)
        if self.input_is_leaf:
            state.plus("backward_temporaries", self.width * self.arch.hidden_size, 0, 0)
        return state

    def embedding_state(self) -> State:
        """The last thing that the backward does; a tied table's gradient exists already and gets the second one added."""
        arch, recipe = self.arch, self.recipe
        state = self.all_gradients(self.sharing.embedding_gradients()).plus_kinds(self.head.saved)
        state.plus("gathered_shards", 0, self.sharing.embedding_backward(), 0)
        trained = not recipe.adapted or "embed_tokens" in recipe.modules_to_save
        if not trained:
            return state
        if self.accumulating:
            state.plus("backward_temporaries", 0, embedding_weights(arch) * stream_width(recipe), 0)
        if arch.tie_word_embeddings and not recipe.adapted:
            state.plus("backward_temporaries", 0, embedding_weights(arch) * stream_width(recipe), 0)
        return state.plus("backward_temporaries", self.width * arch.hidden_size, 0, 0)
