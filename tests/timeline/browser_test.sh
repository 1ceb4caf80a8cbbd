#!/usr/bin/env bash
# Timelines in headless Chromium (browser_test.py). Left out where there is no Chromium, or no Python.
set -euo pipefail
if ! command -v python3 >/dev/null; then
  echo "left out: no python3"
  exit 0
fi
exec python3 -B tests/timeline/browser_test.py "$@"
