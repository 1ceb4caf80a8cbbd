#!/usr/bin/env bash
# What a new pass costs: adds one to a copy of the tree, by the recipe of CONTRIBUTING.md, compiles the list
# of passes with it, and counts the files that it took, except a test of its own. Fails if there are more
# than 4.
#
#   tests/toy_pass.sh [--quick] [FOLDER]     FOLDER: for the copy, which is kept then; else one that is
#                                            removed
#
# Without --quick, by hand: runs the tests that know every pass as well. Edits that are not committed count,
# files that git does not know do not. The pass is `rest`, which changes nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=tests/toy_copy.sh
source tests/toy_copy.sh
enter_copy "$@"

# 1. The row of the table, at its place in the order.
insert passes/framework/passes.def '^PASS(split,' <<'EOF'
PASS(rest,          "leave all as it is")
EOF
# 2. and 3. The pass, in a folder by subject.
cat >passes/sync/rest.cc <<'EOF'
// Leaves a program as it is.
#include "passes/framework/passes.h"

namespace mscclc {

bool run_rest(Program&, PassContext& context) {
  context.count("programs seen");
  return true;
}

}  // namespace mscclc
EOF
insert passes/sync/BUILD.bazel '^ *"sync.cc",' <<'EOF'
        "rest.cc",
EOF
# 4. Its section, with an example that a test runs.
insert docs/design/passes.md '^## split$' <<'EOF'
## rest

<!-- example: rest -->
```mscl
rank 0 {
  tb 0 {
    copy output[0] <- input[0]
  }
}
```
```mscl
rank 0 {
  tb 0 {
    copy output[0] <- input[0]
  }
}
```

EOF
count_places "A pass" 4

# It is declared, registered once, and found by its name.
compile passes/registry.cc passes/sync/rest.cc tools/commands/programs/compile.cc
g++ -std=c++20 -fsyntax-only -Werror=missing-declarations -I. passes/sync/rest.cc
[[ $(g++ -std=c++20 -E -P -I. passes/registry.cc | grep --count '"rest", "leave all as it is", run_rest') == 1 ]] ||
  die "the list of passes does not have it"
if ((quick)); then exit; fi
bazel test //passes:all //passes/sync:all
