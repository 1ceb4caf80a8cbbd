"""Programs of MSCCL++'s Python language, without MSCCL++.

`mscclc mscclpp PROGRAM.py` runs a program that imports `mscclpp.language` against the modules here.
"""
