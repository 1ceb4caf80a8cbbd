"""What the modules of the language share: ops, passes over them, and the writer of plans."""
