"""From the last hidden state to the loss as a tape: the head and the ways to compute the cross-entropy.

Source: transformers 5.24.0 loss/loss_utils.py, modeling_llama.py LlamaForCausalLM; TRL 1.16.0; liger-kernel 0.8.5.
"""

from __future__ import annotations

import math

from .recipe import Recipe
from .scoring import kept, loss_of, scored_logits
from .states import table_width
from .tape import GRADIENT, LOGITS, LOSS, NEW, REUSED, Value

# TRL 1.16.0 kernels/chunked_logprob.py TOKEN_CHUNK_SIZE and trainer/utils.py: positions and vocabulary entries of a tile.
TRL_TOKEN_CHUNK = 4096
TRL_VOCABULARY_CHUNK = 32768


def head(builder, x: Value, metrics: bool = True) -> Value | None:
    """From the last hidden state to the loss. Returns the logits if the loss builds them and the trainer returns them.

    metrics   whether the trainer of a preference logs what it needs all logits for: of the policy, not of the reference
    Source: modeling_llama.py, LlamaForCausalLM.forward.
    """
    tape, arch = builder.tape, builder.arch
    tape.tag = "layer"
    hidden = builder.rms_norm(x)
    trained = builder.full or "lm_head" in builder.recipe.modules_to_save
    weight = tape.weight(arch.vocab_size * arch.hidden_size, table_width(builder.recipe), trained)
    weight.tied = arch.tie_word_embeddings and builder.full
    if builder.recipe.loss == "chunked":
        tiled_loss(builder, hidden, weight)
        return None
    if builder.recipe.objective != "sft":
        scored_logits(builder, hidden, weight, metrics)
        return None
    if builder.recipe.loss == "fused":
        fused_linear_loss(builder, hidden, weight)
        return None
    tape.tag = "head"
    tape.kind = LOGITS
    logits = tape.matmul(hidden, weight, arch.vocab_size)
    if arch.family.logits_scale:
        logits = tape.scale(logits)
    if arch.final_logit_softcapping:
        logits = tape.scale(tape.unary(tape.scale(logits), save_output=True))
    tape.tag = "loss"
    tape.kind = LOSS
    wide = tape.to(logits, 4)
    if builder.recipe.transformers == "4.45":
        logits = wide  # the model itself returned float32 logits
    cross_entropy(builder, wide)
    tape.hold(logits, hidden)
    return logits


def cross_entropy(builder, logits: Value) -> None:
    """ForCausalLMLoss: log_softmax and nll_loss on float32 logits, or a kernel that overwrites them.

    nll_loss_backward makes a tensor like the log-probabilities. Unsloth's and FOAK's cross-entropy kernel saves
    the logits and one number per token and writes the gradient over the logits. Before transformers 5 the loss took
    a contiguous copy of the logits without the last position.
    Source: transformers 5.24.0 loss/loss_utils.py; unsloth kernels/cross_entropy_loss.py.
    """
    tape, whole = builder.tape, logits
    if builder.recipe.transformers != "5":
        # shift_logits = logits[..., :-1, :].contiguous()
        logits = tape.custom([whole], tape.like(whole), [], [(whole, NEW)])
    loss = Value(0, 1, 0, 4, False, LOSS)
    if builder.recipe.kernels in ("foak", "unsloth"):
        sums = tape.record([], Value(1, 0, 0, 4, False, LOSS), [], [])
        tape.custom([logits, sums], loss, [logits, sums], [(logits, REUSED)])
    else:
        log_probabilities = tape.unary(logits, save_output=True)
        tape.custom([log_probabilities], loss, [], [(log_probabilities, NEW)])
    tape.hold(whole, logits)


def tiled_loss(builder, hidden: Value, weight: Value) -> None:
    """TRL's fused head: trained positions only, logits tile by tile in one buffer, float32 gradients.

    Source: TRL 1.16.0 trainer/utils.py _fused_forward, kernels/chunked_logprob.py ChunkedLogProbFunction.
    """
    tape, arch, recipe = builder.tape, builder.arch, builder.recipe
    trained = trained_tokens(recipe)
    compute = 2 if recipe.autocast else hidden.width
    rows = min(trained, TRL_TOKEN_CHUNK)
    tile = rows * TRL_VOCABULARY_CHUNK * compute
    if hidden.width != compute:
        tile += rows * arch.hidden_size * compute
    if weight.width != compute:
        tile += min(TRL_VOCABULARY_CHUNK, arch.vocab_size) * arch.hidden_size * compute
    tape.tag = "loss"
    labels = tape.record([], Value(0, trained, 0, 8, False, LOSS), [], [])
    chosen = Value(0, trained * arch.hidden_size, 0, hidden.width, False, 0)
    tape.custom([hidden, labels], chosen, [labels], [(hidden, NEW)])
    # Saved: log-sum-exp and entropy; in the forward seven more vectors of float32.
    vectors = tape.record([], Value(0, 2 * trained, 0, 4, False, LOSS), [], [])
    tape.tag = "head"
    forward = Value(0, tile + 28 * trained, 0, 1, False, LOGITS)
    wide = tile
    if hidden.width != 4:
        wide += 4 * trained * arch.hidden_size
    if weight.requires_grad and weight.width != 4:
        wide += 4 * arch.vocab_size * arch.hidden_size
    if weight.width != compute and arch.vocab_size > TRL_VOCABULARY_CHUNK:
        # The cast of one tile is still bound while the next one is made.
        following = min(TRL_VOCABULARY_CHUNK, arch.vocab_size - TRL_VOCABULARY_CHUNK)
        wide += following * arch.hidden_size * compute
    if hidden.width != compute and trained > TRL_TOKEN_CHUNK:
        wide += min(TRL_TOKEN_CHUNK, trained - TRL_TOKEN_CHUNK) * arch.hidden_size * compute
    backward = Value(0, wide, 0, 1, False, LOGITS)
    grads = [(weight, NEW), (chosen, NEW)]
    scored = tape.custom([chosen, vectors], Value(0, 1, 0, 4, False, LOSS), [chosen, vectors], grads, forward, backward)
    # The backward makes the logits again.
    made = 3 if weight.requires_grad else 2
    tape.product(0.0, float(trained) * arch.hidden_size * arch.vocab_size, 0.0, 1, made)
    if recipe.objective != "sft":
        kept(tape)
        loss_of(tape, [scored])


def fused_linear_loss(builder, hidden: Value, weight: Value) -> None:
    """Liger's fused linear cross-entropy: gradients are made in the forward, chunk by chunk of tokens.

    A chunk has as many tokens as make its logits no larger than the hidden states, rounded up to a power of two.
    Source: liger-kernel 0.8.5 ops/fused_linear_cross_entropy.py.
    """
    tape, arch, recipe = builder.tape, builder.arch, builder.recipe
    tokens = recipe.tokens
    pieces = (arch.vocab_size + arch.hidden_size - 1) // arch.hidden_size
    chunk = 1
    while chunk * pieces < tokens:
        chunk = chunk * 2
    compute = 2 if recipe.autocast else hidden.width
    buffer = min(chunk, tokens) * arch.vocab_size * compute
    if weight.width != compute:
        # The product with the transposed head casts it anew for every chunk; a trained head's own cast is cached
        # beside that from the first chunk's gradient on.
        casts = 2 if weight.requires_grad and chunk < tokens else 1
        buffer += casts * arch.vocab_size * arch.hidden_size * compute
    tape.tag = "loss"
    saved = [tape.record([], Value(hidden.per_token, 0, 0, hidden.width, False, LOSS), [], [])]
    grads = [(hidden, REUSED)]
    if weight.requires_grad:
        saved.append(tape.record([], Value(0, weight.fixed, 0, weight.width, False, GRADIENT), [], []))
        grads.append((weight, REUSED))
    loss = Value(1, 0, 0, 4, False, LOSS)
    tape.custom([hidden] + saved, loss, saved, grads, Value(0, buffer, 0, 1, False, LOGITS))
    tape.product(float(arch.hidden_size) * arch.vocab_size, 0.0, 0.0, 1 + len(grads), 0)


def trained_tokens(recipe: Recipe) -> int:
    """Positions that have a label: all but the first of each sequence, or a share of them; GRPO's completions."""
    if recipe.objective == "grpo":
        return recipe.micro_batch_size * min(recipe.completion_length, recipe.sequence_length - 1)
    positions = recipe.sequences * (recipe.sequence_length - 1)
    return max(1, math.ceil(positions * recipe.trained_token_share))
