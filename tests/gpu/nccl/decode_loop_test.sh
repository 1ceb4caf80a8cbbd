#!/bin/sh
exec python3 -B tests/gpu/nccl/decode_loop_test.py
