"""vLLM's variables, as attributes."""

VLLM_BATCH_INVARIANT = False
