// Syncs of thread blocks: those that ops ask for, and those that their data needs.
#include "compiler/mscclpp/passes.h"
#include "compiler/mscclpp/runs.h"

namespace mscclc::mscclpp {
namespace {

/// How many of an op's references count, from the first on.
enum Counted : uint32_t { none = 0, first = 1, all = UINT32_MAX };

struct Accesses {
  Counted reads, writes;
};

Accesses accesses_of(Name name) {
  static constexpr Accesses kAll[] = {
#define MSCCLPP_OP(name, op, form, reads, writes) {Counted::reads, Counted::writes},
#include "compiler/mscclpp/op_names.def"
#undef MSCCLPP_OP
  };
  return kAll[static_cast<size_t>(name)];
}

Op sync_at(PythonCall place) { return {.name = Name::nop, .place = place}; }

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
    const Accesses counted = accesses_of(op.name);
    each_of(program_.sources, op.sources, counted.reads, [&](const Ref& ref) { use(false, ref); });
    each_of(program_.destinations, op.destinations, counted.writes,
            [&](const Ref& ref) { use(true, ref); });
  }
  template <class Use>
  static void each_of(const std::vector<Ref>& all, Span span, uint32_t most, const Use& use) {
    for (uint32_t i = 0; i < std::min(span.count, most); ++i) {
      const Ref& ref = all[span.first + i];
      if (is_local(ref)) use(ref);
    }
  }

  const Program& program_;
  struct {
    Runs read, written;
  } of_[kBuffers];
};

}  // namespace

Ops write_out_syncs(Program& program, const Ops& ops) {
  Ops out;
  out.reserve(2 * ops.size());
  for (Op op : ops) {
    if ((op.sync & kBefore) != 0) out.push_back(sync_at(op.place));
    if (op.body >= 0) {
      program.bodies.push_back(
          write_out_syncs(program, program.bodies[static_cast<size_t>(op.body)]));
      op.body = static_cast<int32_t>(program.bodies.size() - 1);
    }
    out.push_back(op);
    if ((op.sync & kAfter) != 0) out.push_back(sync_at(op.place));
  }
  return out;
}

Ops add_syncs(Program& program, const Ops& ops) {
  Ops out;
  out.reserve(ops.size() + ops.size() / 2);
  Touched seen(program);
  for (Op op : ops) {
    if (op.name == Name::nop || op.name == Name::barrier) {
      seen.clear();
      out.push_back(op);
      continue;
    }
    if (op.body >= 0) {
      program.bodies.push_back(add_syncs(program, program.bodies[static_cast<size_t>(op.body)]));
      op.body = static_cast<int32_t>(program.bodies.size() - 1);
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
  for (Block& block : program.blocks) {
    if (program.fusion) block.ops = fuse(program, block.ops);
    block.ops = write_out_syncs(program, block.ops);
    if (program.auto_sync) block.ops = add_syncs(program, block.ops);
  }
}

}  // namespace mscclc::mscclpp
