#!/usr/bin/env bash
# Runs a file of tests of the Python package: run_tests.sh MSCCLC TEST.py
set -euo pipefail
tool=$(cd "$(dirname "$1")" && pwd)
test=$(cd "$(dirname "$2")" && pwd)
PATH=$tool:$PATH PYTHONPATH=$(cd python && pwd):$test exec python3 -B -m unittest -q "$2"
