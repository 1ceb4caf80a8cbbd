"""Ops of vLLM's own."""
