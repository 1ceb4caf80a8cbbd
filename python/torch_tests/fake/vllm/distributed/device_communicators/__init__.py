"""Communicators of groups."""
