// A plan as a whole: parse, read the parts in the order in which they need one another, then check
// that what the plan says twice agrees.
#include <fmt/format.h>

#include <string>

#include "ir/verify/verify.h"
#include "plans/format/plan_json.h"
#include "plans/format/read/read_state.h"
#include "plans/format/wire/message_bounds.h"

namespace mscclc {
namespace {

class PlanReader {
 public:
  PlanReader(const JsonTape& tape, const std::string& name, uint64_t bytes,
             Diagnostics& diagnostics, const std::function<bool(std::string_view)>* canonical)
      : json_(tape, name, diagnostics),
        name_(name),
        canonical_(canonical),
        state_(json_, program_, bytes) {}

  std::optional<Program> read() {
    if (!read_all() || !verify()) return std::nullopt;
    set_caller_dims();
    return std::move(program_);
  }
  /// REQUIRES: read() was successful.
  std::optional<ProofRecord>&& proof() { return std::move(proof_); }

 private:
  bool read_all() {
    const KeySet required = {w_name, w_collective, w_protocol, w_inplace, w_gpus};
    const KeySet optional = {w_reuse_resources,
                             w_num_threads_per_block,
                             w_use_double_scratch_buffer,
                             w_buffer_alignment,
                             w_min_message_size,
                             w_max_message_size,
                             w_mscclc};
    if (!top_.read(json_, 0, required, optional)) return false;
    state_.ours = top_.has(w_mscclc);
    program_.split = true;
    program_.foreign = !state_.ours;
    if (!read_header()) return false;
    if (state_.ours && !read_extra(state_, top_[w_mscclc])) return false;
    if (!read_ranks(state_, top_[w_gpus]) || !read_blocks(state_) || !read_scratch(state_) ||
        !read_notes(state_)) {
      return false;
    }
    if (!state_.ours) {
      program_.select.sizes = sizes_;
      return infer_contract(state_, top_[w_collective], collective_, in_place_);
    }
    return check_hash();
  }

  bool read_header() {
    std::string_view name, protocol;
    if (!json_.string(top_[w_name], name) || !json_.string(top_[w_collective], collective_) ||
        !json_.string(top_[w_protocol], protocol) || !json_.boolean(top_[w_inplace], in_place_)) {
      return false;
    }
    program_.name = name;
    if (protocol != "LL" && protocol != "Simple") {
      return json_.fail(top_[w_protocol],
                        fmt::format("'{}' is not a protocol; expected 'LL' or 'Simple'", protocol));
    }
    state_.packets = protocol == "LL";
    Launch& launch = program_.launch;
    return read_flag(w_reuse_resources, launch.reuse_scratch) &&
           read_flag(w_use_double_scratch_buffer, state_.double_scratch) &&
           read_positive(w_num_threads_per_block, launch.threads) && threads_allowed() &&
           read_positive(w_buffer_alignment, launch.align) && alignment_allowed() &&
           read_size(w_min_message_size, sizes_.min) && read_size(w_max_message_size, sizes_.max);
  }

  bool read_flag(KnownWord key, bool& out) {
    return !top_.has(key) || json_.boolean(top_[key], out);
  }
  bool read_size(KnownWord key, uint64_t& out) {
    return !top_.has(key) || json_.u64(top_[key], out);
  }
  bool read_positive(KnownWord key, uint32_t& out) {
    if (!top_.has(key)) return true;
    return json_.number(top_[key], out) && (out > 0 || json_.fail(top_[key], "is 0"));
  }

  bool threads_allowed() {
    const uint32_t threads = program_.launch.threads;
    return is_block_size(threads) ||
           json_.fail(top_[w_num_threads_per_block],
                      fmt::format("is {}; a thread block has {} to {}, in whole warps", threads,
                                  kWarpThreads, kMaxBlockThreads));
  }

  bool alignment_allowed() {
    const uint32_t align = program_.launch.align;
    return is_alignment(align) ||
           json_.fail(top_[w_buffer_alignment],
                      fmt::format("is {}; expected a multiple of 16 up to 1 MiB", align));
  }

  /// Comes last, so that what is plainly wrong is reported as such.
  bool check_hash() {
    const NodeId node = top_[w_mscclc];
    const std::string hash = canonical_hash(json_.tape(), canonical_);
    NodeId proof = kNoNode;
    std::string_view target;
    for (NodeId n = json_.first(node); n != json_.end(node); n = json_.next(n)) {
      const Word key = json_.tape()[n].key;
      if (key == w_proof) proof = n;
      if (key == w_target && !json_.string(n, target)) return false;
      if (key != w_hash) continue;
      std::string_view said;
      if (!json_.string(n, said)) return false;
      if (said == hash || said == canonical_hash(json_.tape(), nullptr, HashOf::everything)) {
        continue;
      }
      return json_.fail(n, "content-hash",
                        fmt::format("the plan was changed after it was written: its content has "
                                    "the hash {}",
                                    hash));
    }
    return proof == kNoNode || read_proof(json_, proof, target, proof_.emplace());
  }

  bool verify() {
    Diagnostics& diagnostics = json_.diagnostics();
    Diagnostics found;
    if (!verify_structure(program_, found)) {
      for (Diagnostic d : found.all()) {
        if (!d.span.valid() && d.path.empty()) d.path = name_;
        diagnostics.add(std::move(d));
      }
      return false;
    }
    return !state_.ours || check_derived();
  }

  /// What the wire's keys say about all of a plan follows from the extra key: it must be so.
  bool check_derived() {
    const WireLayout layout = lay_out(program_);
    const Range sizes = wire_sizes(program_, layout, used_loops(program_));
    return agree(w_collective, collective_ == mscclc::name(program_.contract.kind)) &&
           agree(w_protocol, state_.packets == layout.packets) &&
           agree(w_inplace, in_place_ == (program_.contract.in_place == InPlace::yes)) &&
           agree(w_use_double_scratch_buffer, state_.double_scratch == layout.double_scratch) &&
           agree(w_min_message_size, sizes_.min == sizes.min) &&
           agree(w_max_message_size, sizes_.max == sizes.max);
  }

  bool agree(KnownWord key, bool same) {
    return same ||
           json_.fail(top_.has(key) ? top_[key] : 0,
                      fmt::format("'{}' is not what 'mscclc' makes it", json_.tape().text(key)));
  }

  /// Input and output as the contract shapes them, for messages.
  void set_caller_dims() {
    for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
      for (const Side side : {Side::input, Side::output}) {
        const std::vector<uint32_t> dims = program_.contract.shape(side, r).dims;
        const std::vector<int64_t> values(dims.begin(), dims.end());
        program_.ranks[r].buffers[static_cast<size_t>(side)].dims = program_.append(values);
      }
    }
  }

  const JsonReader json_;
  const std::string& name_;
  const std::function<bool(std::string_view)>* const canonical_;
  Program program_;
  ReadState state_;
  Members top_;
  std::string_view collective_;
  bool in_place_ = false;
  Range sizes_;
  std::optional<ProofRecord> proof_;
};

}  // namespace

std::optional<Program> read_plan(std::string_view json, const std::string& name,
                                 Diagnostics& diagnostics, std::optional<ProofRecord>* proof,
                                 const std::function<bool(std::string_view)>* canonical) {
  JsonTape tape;
  if (!tape.parse(json, name, diagnostics)) return std::nullopt;
  PlanReader reader(tape, name, json.size(), diagnostics, canonical);
  std::optional<Program> program = reader.read();
  if (program && proof != nullptr) *proof = reader.proof();
  return program;
}

}  // namespace mscclc
