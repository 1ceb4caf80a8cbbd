#!/bin/sh
set -e
python3 -B tests/gpu/frameworks/run_test.py
python3 -B tests/gpu/frameworks/vllm_engine_test.py
python3 -B tests/gpu/frameworks/sglang_engine_test.py
