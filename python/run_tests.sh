#!/usr/bin/env bash
# Runs a file of tests of the Python package: run_tests.sh MSCCLC TEST.py FOLDER_OF_LIBRARY
set -euo pipefail
tool=$(cd "$(dirname "$1")" && pwd)
test=$(cd "$(dirname "$2")" && pwd)
PATH=$tool:$PATH LD_LIBRARY_PATH=$PWD/$3 PYTHONPATH=$(cd python && pwd):$test exec python3 -B -m unittest -q "$2"
