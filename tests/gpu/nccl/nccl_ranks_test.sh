#!/bin/sh
exec python3 -B tests/gpu/nccl/nccl_ranks_test.py
