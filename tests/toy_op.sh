#!/usr/bin/env bash
# What a new op costs: adds one to a copy of the tree, by the recipe of CONTRIBUTING.md, builds it,
# runs a program with it, and counts the places that it took. Fails if there are more than 5.
#
#   tests/toy_op.sh [--quick] [FOLDER]     FOLDER: for the copy, which is kept then; else one that is removed
#
# By hand, or nightly: nearly everything is compiled again. With --quick, as ./test has it, what knows
# all ops is only compiled, and the tables are compared. Edits that are not committed count, files that git
# does not know do not. The op is `reduce_copy_packets_put`: reduce_copy_packets that also writes the sum
# at far ends.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=tests/toy_copy.sh
source tests/toy_copy.sh
enter_copy "$@"

# 1. The row of the table.
insert ir/ops/ops.def '^OP(switch_broadcast,' <<'EOF'
OP(reduce_copy_packets_put, "", "", kMemory, "L Lp R*", "~L Lp*", kReduces | kPolls, kPacket, "reduce_copy_packets put", "reduce_packets", "reduce_copy_packets, and write the result at far ends too")
EOF

# 2. Its name in the schema of plans.
insert plans/schema.json '^ *"reduce_copy_send_packets"' <<'EOF'
        "reduce_copy_packets_put",
EOF

# 3. Its tiny program: a function, and the row that names it.
insert executor/testing/op_plans.cc '^/// Three ranks with a switch' <<'EOF'
/// Allreduce: shares come as packets, sums go straight into the outputs, and are kept as packets.
TestProgram reduce_copy_packets_put_plan(PacketFormat format) {
  TestProgram t(3, 3);
  connect_all(t, ChannelKind::memory);
  for (uint32_t r = 0; r < 3; ++r) {
    const uint32_t parts = t.buffer(r, "parts", 3, format, 2);
    const uint32_t kept = t.buffer(r, "kept", 1, format, 2);
    std::vector<Operand> sources = {local(kInput, r)};
    std::vector<Operand> sums = {local(kOutput, r), local(kept, 0)};
    for (const uint32_t p : others(r, 3)) {
      add_op(t, r, 0, Kind::put_packets, {far(mesh(r, p), parts, r)}, {local(kInput, p)});
      sources.push_back(local(parts, p));
      sums.push_back(far(mesh(r, p), kOutput, r));
    }
    add_op(t, r, 0, Kind::reduce_copy_packets_put, sums, sources).complete = true;
    add_op(t, r, 0, Kind::unpack_packets, {local(kOutput, r)}, {local(kept, 0)});
    meet_all(t, r, false);
  }
  return t;
}

EOF
insert executor/testing/op_plans.cc '^ *{"switch_broadcast",' <<'EOF'
      {"reduce_copy_packets_put", reduce_copy_packets_put_plan, true},
EOF

# 4. The page of ops, which a command writes.
if ((quick)); then
  write_ops_page
  # shellcheck disable=SC2046
  compile $(sources_with 'ops\.def|case (OpKind|Kind)::' compiler executor ir passes plans runtime tools) \
    executor/testing/op_plans.cc passes/fuse/fuse_rule_table.cc
  count_places "An op" 5
  exit
fi
bazel build //tools:mscclc
bazel-bin/tools/mscclc ops --format=markdown >docs/ops.md

# The tests that know every op: its rules of fusion, its plan on the host machine, its steps.
bazel test //ir/ops:ops_test //ir/ops:ops_doc_test //plans/format:schema_test //passes/fuse:fuse_rules_test \
  //passes/fuse:fuse_rule_table_test //passes/fuse:fuse_every_rule_test //executor:block_programs_test \
  //executor/simulator:op_test

# A program in which the op comes from fusion, proved and run.
toy=$(mktemp --suffix=.mscl)
cat >"$toy" <<'EOF'
program    toy
collective allreduce(ranks: 3, chunks: 3)

rank r in 0..3 {
  let others = 0..3 except r
  buffer parts[3] packets: LL16, copies: 2
  buffer kept[1] packets: LL16, copies: 2
  channel ch[p in others] = memory(p)

  tb 0 {
    for p in others { put_packets ch[p].parts[r] <- input[p] }
    reduce_packets output[r] <- input[r], parts[p] for p in others
    copy_packets kept[0] <- output[r]
    for p in others { put ch[p].output[r] <- output[r] }
    unpack_packets output[r] <- kept[0]
    signal ch[p] for p in others
    wait ch[p] for p in others
  }
}
EOF
ir=$(bazel-bin/tools/mscclc compile "$toy" --emit=ir)
[[ $ir == *reduce_copy_packets_put* ]] || die "no fusion makes the op"
bazel-bin/tools/mscclc run "$toy" --bytes 0,1,7,1000,1M --dtype all --op all
rm "$toy"
count_places "An op" 5
