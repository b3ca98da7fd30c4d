"""Keys of training configurations that do not move a GPU's memory during a training step.

Data, schedules, logging, saving, evaluation between the steps, the Hub, the tokenizer. Sources: the argument classes of
Transformers 5.24.0, TRL 1.16.0, LLaMA-Factory 0.9.5 and Axolotl 0.21.0.
"""

from __future__ import annotations

PREFIXES = (
    "adam_", "bench_", "chat_template", "comet_", "cosine_", "data_", "dataloader_", "dataset", "ddp_", "early_stopping",
    "eval_", "evals_", "evaluation_", "generation_", "gradio_", "greater_is", "hf_", "hub_", "include_", "is_", "jagged_",
    "label_", "lm_eval_", "log_", "logging_", "loraplus_", "lr_", "mlflow_", "otel_", "peft_init", "profiler_", "push_",
    "ray_", "save_", "saves_", "shuffle_", "skip_", "special_tokens", "streaming", "swanlab_", "test_datasets",
    "tokenizer_", "trackio_", "train_on_", "use_mlflow", "use_swanlab", "use_wandb", "val_", "wandb_", "warmup_",
)  # fmt: skip

WORDS = (
    "accelerator_config", "added_tokens_overrides", "assistant_only_loss", "auto_find_batch_size", "average_tokens_across_devices",
    "batch_eval_metrics", "bias", "bnb_4bit_compute_dtype", "cache_dir", "completion_only_loss", "curriculum_sampling", "debug", "default_system_message",
    "device_map", "disable_tqdm", "do_eval", "do_predict", "do_train", "enable_thinking", "eos_token",
    "excess_length_strategy", "experimental_skip_move_to_device", "fp16_opt_level", "fsdp_final_state_dict_type", "full_determinism", "gc_steps", "gpu_memory_limit",
    "group_by_length", "ignore_data_skip", "init_lora_weights", "inference_mode", "interleave_probs", "jit_mode_eval",
    "learning_rate", "length_column_name", "llm_int8_has_fp16_weight", "llm_int8_threshold", "load_best_model_at_end",
    "local_files_only", "local_rank", "lora_alpha", "lora_alpha_pattern", "lora_fan_in_fan_out", "lora_model_dir", "lora_on_cpu",
    "lora_task_type", "loss_watchdog_patience", "loss_watchdog_threshold", "low_cpu_mem_usage", "mask_history", "max_grad_norm", "max_samples",
    "max_memory", "max_steps", "media_dir", "metric_for_best_model", "min_sample_len", "mix_strategy", "model_revision", "moe_aux_loss_coef",
    "mp_parameters", "neftune_noise_alpha", "no_cuda", "num_epochs", "num_train_epochs", "num_labels", "output_dir",
    "overwrite_cache", "overwrite_output_dir", "packing_strategy", "pad_token", "pad_to_multiple_of", "past_index", "peft_use_rslora",
    "plot_loss", "pref_beta", "predict_with_generate", "preprocessing_batch_size", "preprocessing_num_workers", "print_param_status", "project",
    "random_state", "remove_unused_columns", "report_to", "resume_from_checkpoint", "restore_callback_states_from_checkpoint", "revision",
    "rope_scaling", "router_aux_loss_coef", "run_name", "seed", "strict", "task_type", "template", "tf32", "tokenized_path", "tokens", "tool_format",
    "torch_empty_cache_steps", "truncation_mode", "trust_remote_code", "type_of_model", "use_cpu", "use_fast_tokenizer", 
    "use_rslora", "use_safetensors", "use_tensorboard", "use_cache", "vllm_maxlen", "vllm_gpu_util", "weight_decay", "video_maxlen", "words",
    "sample_packing_bin_size", "sample_packing_group_size", "sample_packing_sequentially", "tokenizer", "model", "args", "train_dataset", "formatting_func",
    "callbacks", "processing_class", "data_collator", "token", "main_process_port", "main_process_ip", "machine_rank", "rdzv_backend",
    "master_addr", "master_port", "num_cpu_threads_per_process", "mixed_precision", "multi_gpu", "optim_args", "sample_packing", "model_type", "eot_tokens", "torchdistx_path", "gptq_groupsize", "gptq_model_v1", "packing", "padding_free", "neat_packing",
    "image_max_pixels", "video_max_pixels", "flex_attn_compile_kwargs", "auto_resume_from_checkpoints", "flash_optimum", "project_name", "do_causal_lm_eval",
    "pretrain_multipack_buffer_size", "per_device_eval_batch_size", "fsdp_transformer_layer_cls_to_wrap", "freeze_vision_tower", "freeze_multi_modal_projector",
    "freeze_language_model", "pretraining_dataset", "revision_of_model", "total_num_tokens", "ddp", "peft_type", "push_to_hub",
)  # fmt: skip
