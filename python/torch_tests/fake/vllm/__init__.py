"""A fake vLLM: what the platform plug-in meets of it, as it is in vLLM 0.24."""
