// Syncs of thread blocks: those that ops ask for, and those that their data needs.
#include "compiler/mscclpp/passes.h"
#include "compiler/mscclpp/runs.h"

namespace mscclc::mscclpp {
namespace {

Op sync_at(PythonCall place) { return {.kind = OpKind::sync, .place = place}; }

/// What has been read and written since the last sync.
class Touched {
 public:
  explicit Touched(const Program& program) : program_(program) {}

  bool conflicts_with(const Op& op) const {
    bool found = false;
    each(op, [&](bool writes, const Ref& ref) {
      const auto& chunks = of_[static_cast<size_t>(ref.where - kInput)];
      const uint64_t first = ref.first, last = first + ref.count;
      found = found || chunks.written.has_any(first, last) ||
              (writes && chunks.read.has_any(first, last));
    });
    return found;
  }
  void add(const Op& op) {
    each(op, [&](bool writes, const Ref& ref) {
      auto& chunks = of_[static_cast<size_t>(ref.where - kInput)];
      (writes ? chunks.written : chunks.read).add(ref.first, uint64_t{ref.first} + ref.count);
    });
  }
  void clear() {
    for (auto& chunks : of_) {
      chunks.read.clear();
      chunks.written.clear();
    }
  }

 private:
  /// Calls `use` for each local reference that counts, of pipelines for those of all their ops.
  template <class Use>
  void each(const Op& op, const Use& use) const {
    if (op.body >= 0) {
      for (const Op& inner : program_.bodies[static_cast<size_t>(op.body)]) each(inner, use);
      return;
    }
    const OpInfo& row = info(op.kind);
    each_of(row.srcs, program_.sources, op.sources, row.has(kReduces),
            [&](const Ref& ref) { use(false, ref); });
    each_of(row.dsts, program_.destinations, op.destinations, false,
            [&](const Ref& ref) { use(true, ref); });
  }
  /// Packets order themselves, but count as what a sum reads (`packets`). What lies on other ranks
  /// is ordered by signals.
  template <class Use>
  static void each_of(const Slots& slots, const std::vector<Ref>& all, Slice slice, bool packets,
                      const Use& use) {
    for (uint32_t i = 0; i < slice.count; ++i) {
      const Ref& ref = all[slice.first + i];
      if (is_local(ref) && (packets || !slots.of(i, false).packets)) use(ref);
    }
  }

  const Program& program_;
  struct {
    Runs read, written;
  } of_[kBuffers];
};

}  // namespace

Ops write_out_syncs(const Ops& ops) {
  Ops out;
  out.reserve(2 * ops.size());
  for (const Op& op : ops) {
    if ((op.sync & kBefore) != 0) out.push_back(sync_at(op.place));
    out.push_back(op);
    if ((op.sync & kAfter) != 0) out.push_back(sync_at(op.place));
  }
  return out;
}

Ops add_syncs(const Program& program, const Ops& ops) {
  Ops out;
  out.reserve(ops.size() + ops.size() / 2);
  Touched seen(program);
  for (const Op& op : ops) {
    if (info(op.kind).has(kSyncs)) {
      seen.clear();
      out.push_back(op);
      continue;
    }
    if (seen.conflicts_with(op)) {
      out.push_back(sync_at(op.place));
      seen.clear();
    }
    seen.add(op);
    out.push_back(op);
  }
  return out;
}

void run_passes(Program& program) {
  const auto run = [&](Ops& ops) {
    if (program.fusion) ops = fuse(program, ops);
    ops = write_out_syncs(ops);
    if (program.auto_sync) ops = add_syncs(program, ops);
  };
  for (Ops& body : program.bodies) run(body);  // before the ops whose bodies they are
  for (Block& block : program.blocks) run(block.ops);
}

}  // namespace mscclc::mscclpp
