"""A fake vLLM: what a platform plug-in meets of it. Written from its documented interface."""
