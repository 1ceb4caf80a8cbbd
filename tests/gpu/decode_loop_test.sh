#!/bin/sh
exec python3 -B tests/gpu/decode_loop_test.py
