"""Log-probabilities of tokens from all logits, as DPO and GRPO took them before TRL's tiled head.

Source: TRL 1.9.0 trainer/utils.py selective_log_softmax, entropy_from_logits; trainer/dpo_trainer.py
DPOTrainer._compute_loss; trainer/grpo_trainer.py GRPOTrainer._get_per_token_logps_and_entropies.
"""

from __future__ import annotations

from .states import stream_width
from .tape import LOGITS, LOSS, NEW, PART, Value

# Positions of which the entropy is taken at once.
ENTROPY_CHUNK = 128


def scored_logits(builder, hidden: Value, weight: Value, metrics: bool) -> None:
    """The head's logits, the log-probability of each token from them, and what the trainer logs of them.

    DPO has logits of all positions, GRPO of the completions and the position before them, which it divides by the
    temperature in place. The last position of each sequence is cut off.
    """
    tape, arch, recipe = builder.tape, builder.arch, builder.recipe
    grpo = recipe.objective == "grpo"
    sequences = recipe.sequences
    positions = min(recipe.completion_length + 1, recipe.sequence_length) if grpo else recipe.sequence_length
    if grpo:
        part = Value(0, sequences * positions * arch.hidden_size, 0, hidden.width, False, hidden.kind)
        part.view_of = hidden
        hidden = tape.record([hidden], part, [], [(hidden, NEW)])
    tape.tag = "head"
    tape.kind = LOGITS
    source, matrix = tape.matmul_input(hidden), tape.matmul_input(weight)
    logits = Value(0, sequences * positions * arch.vocab_size, 0, source.width, False, LOGITS)
    saved = [matrix] if source.requires_grad else []
    if matrix.requires_grad:
        saved.append(source)
    tape.record([source, matrix], logits, saved, [(matrix, NEW), (source, NEW)])
    tape.product(0.0, float(sequences * positions) * arch.hidden_size * arch.vocab_size, 0.0)
    if arch.family.logits_scale:
        logits = tape.scale(logits)
    if arch.final_logit_softcapping:
        logits = tape.scale(tape.unary(tape.scale(logits), save_output=True))
    tape.tag = "loss"
    # accelerate's ConvertOutputsToFp32
    outputs = tape.to(logits, 4) if recipe.autocast else logits
    scored = Value(0, sequences * (positions - 1) * arch.vocab_size, 0, outputs.width, False, LOSS)
    scored.view_of = outputs
    scored = tape.record([outputs], scored, [], [(outputs, NEW)])
    if grpo:
        scored = divided_in_place(tape, scored, outputs)
    found = chosen_log_probabilities(tape, scored, sequences)
    kept(tape)
    tape.hold(outputs)
    if metrics:
        logged(builder, scored, outputs, sequences)
    loss_of(tape, found)


def kept(tape) -> None:
    """A point at which to see what the policy keeps while the reference has its turn."""
    tape.tag = "kept"
    tape.record([], Value(0, 1, 0, 4, False, LOSS), [], [])


def loss_of(tape, log_probabilities: list[Value]) -> None:
    """A loss of one number per token or sequence, too small to count."""
    tape.tag = "loss"
    loss = Value(0, 1, 0, 4, False, LOSS)
    tape.custom(list(log_probabilities), loss, [], [(value, NEW) for value in log_probabilities])


def divided_in_place(tape, scored: Value, whole: Value) -> Value:
    """Division of a view in place: its backward divides a copy of the part, beside a copy of the gradient of all logits.

    Source: torch/csrc/autograd/functions/tensor.cpp, CopySlices::apply.
    """
    output = tape.like(scored)
    output.view_of = whole
    copies = Value(0, 2 * scored.fixed, 0, scored.width, False, LOSS)
    return tape.custom([scored], output, [], [(scored, NEW)], None, copies)


def chosen_log_probabilities(tape, scored: Value, sequences: int) -> list[Value]:
    """selective_log_softmax: in float32 the chosen logits less the log-sum-exp, in 16 bits the log-softmax, by sequence."""
    count = scored.fixed // sequences
    result = Value(0, sequences, 0, scored.width, False, LOSS)
    wide = scored.width == 4
    found = [tape.custom([scored], result, [scored], [(scored, NEW)])] if wide else []
    rows = tape.view(scored)
    for _ in range(sequences):
        row = Value(0, count, 0, scored.width, False, LOSS)
        row.view_of = rows
        row = tape.record([rows], row, [], [(rows, PART)])
        workspace = Value(0, 2 * count, 0, scored.width, False, LOSS)
        if wide:
            # exp(x - sum) and its product with the gradient
            found.append(tape.custom([row], Value(0, 1, 0, 4, False, LOSS), [row], [(row, NEW)], None, workspace))
        else:
            probabilities = tape.unary(row, save_output=True)
            one = Value(0, 1, 0, 4, False, LOSS)
            found.append(tape.custom([probabilities], one, [probabilities], [(probabilities, NEW)]))
    return found


def logged(builder, scored: Value, outputs: Value, sequences: int) -> None:
    """The entropy of all positions, in pieces of a copy; for DPO beside the logits of the reference.

    A single sequence needs no copy, because without its last position it is still contiguous.
    """
    tape, arch, recipe = builder.tape, builder.arch, builder.recipe
    tape.tag = "loss"
    tape.kind = LOGITS
    held = [outputs]
    if recipe.objective == "dpo" and recipe.reference != "precomputed":
        held.append(tape.record([], tape.like(outputs), [], []))
    rows = min(ENTROPY_CHUNK, scored.fixed // arch.vocab_size)
    copy = scored.fixed if sequences > 1 else 0
    pieces = Value(0, copy + 3 * rows * arch.vocab_size, 0, outputs.width, False, LOSS)
    tape.record([], Value(0, 1, 0, 4, False, LOSS), [], [], pieces)
    tape.hold(*held)
