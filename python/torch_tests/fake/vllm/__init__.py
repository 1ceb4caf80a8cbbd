"""A stand-in for vLLM: what a platform plug-in meets of it. Written from its documented interface."""
