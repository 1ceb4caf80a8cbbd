#!/bin/sh
exec python3 -B tests/gpu/frameworks/run_test.py
