#include "tests/library/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "compiler/compile.h"
#include "ir/rows/row_function.h"
#include "ir/support/read_file.h"

namespace mscclc {
namespace {

std::vector<Defines> ranks(std::initializer_list<int> counts, std::string_view name = "R") {
  std::vector<Defines> worlds;
  for (const int n : counts) worlds.push_back({{std::string(name), std::to_string(n)}});
  return worlds;
}

/// Worlds of whole nodes: ranks and GPUs per node.
std::vector<Defines> nodes(std::initializer_list<std::pair<int, int>> shapes) {
  std::vector<Defines> worlds;
  for (const auto& [world, gpus] : shapes) {
    worlds.push_back({{"world", std::to_string(world)}, {"gpus", std::to_string(gpus)}});
  }
  return worlds;
}

/// These worlds, and some whose root is neither the first of its node nor on the first node.
std::vector<Defines> with_far_roots(std::vector<Defines> worlds) {
  worlds.push_back({{"world", "6"}, {"gpus", "3"}, {"root", "4"}});
  worlds.push_back({{"world", "6"}, {"gpus", "2"}, {"root", "3"}});
  return worlds;
}

/// These worlds, and some with other distances: to the twin, across half a node, backwards.
std::vector<Defines> with_shifts(std::vector<Defines> worlds) {
  worlds.push_back({{"world", "4"}, {"gpus", "2"}, {"shift", "2"}});
  worlds.push_back({{"world", "8"}, {"gpus", "4"}, {"shift", "2"}});
  worlds.push_back({{"world", "6"}, {"gpus", "3"}, {"shift", "-1"}});
  return worlds;
}

/// These worlds, and some with other blocks and instances.
std::vector<Defines> with_blocks_and_instances(std::vector<Defines> worlds) {
  worlds.push_back({{"R", "2"}, {"T", "1"}});
  worlds.push_back({{"R", "3"}, {"T", "2"}, {"I", "2"}});
  return worlds;
}

/// These worlds, and some with another root, or a root that is fewer calls ahead.
std::vector<Defines> with_roots_between_nodes(std::vector<Defines> worlds) {
  worlds.push_back({{"R", "3"}, {"root", "1"}});
  worlds.push_back({{"R", "2"}, {"C", "2"}});
  worlds.push_back({{"R", "2"}, {"C", "3"}, {"root", "1"}});
  return worlds;
}

/// These worlds, and some with another root, or in which the others add up a share each.
std::vector<Defines> with_roots_and_shares(std::vector<Defines> worlds) {
  worlds.push_back({{"R", "3"}, {"root", "1"}});
  worlds.push_back({{"R", "2"}, {"shared", "true"}});
  worlds.push_back({{"R", "4"}, {"root", "3"}, {"shared", "true"}, {"I", "2"}});
  return worlds;
}

/// These worlds, and two whose packets have another format than the program's own.
std::vector<Defines> with_formats(std::vector<Defines> worlds) {
  worlds.push_back({{"R", "4"}, {"F", "LL8"}});
  worlds.push_back({{"R", "3"}, {"F", "LL128"}});
  return worlds;
}

/// These worlds, and some in which blocks of their own copy a rank's own part, or serve one peer.
std::vector<Defines> with_own_blocks(std::vector<Defines> worlds) {
  worlds.push_back({{"R", "4"}, {"own", "2"}});
  worlds.push_back({{"R", "3"}, {"spread", "true"}});
  worlds.push_back({{"R", "4"}, {"spread", "true"}, {"own", "3"}, {"B", "2"}});
  return worlds;
}

/// These worlds with formats, and two in which blocks of their own take what arrives.
std::vector<Defines> with_formats_apart(std::vector<Defines> worlds) {
  worlds = with_formats(std::move(worlds));
  worlds.push_back({{"R", "4"}, {"apart", "true"}});
  worlds.push_back({{"R", "3"}, {"F", "LL128"}, {"apart", "true"}});
  return worlds;
}

/// The same, and some with one copy of the scratch.
std::vector<Defines> with_formats_apart_and_copies(std::vector<Defines> worlds) {
  worlds = with_formats_apart(std::move(worlds));
  worlds.push_back({{"R", "4"}, {"C", "1"}});
  worlds.push_back({{"R", "4"}, {"F", "LL128"}, {"apart", "true"}, {"C", "1"}});
  return worlds;
}

/// These worlds, and one whose blocks go slice by slice.
std::vector<Defines> with_slices(std::vector<Defines> worlds) {
  worlds.push_back({{"R", "4"}, {"S", "3"}});
  return worlds;
}

std::vector<Defines> with_roots() {
  std::vector<Defines> worlds = ranks({2, 3, 4, 5, 8, 16});
  worlds.push_back({{"R", "5"}, {"root", "3"}});
  worlds.push_back({{"R", "8"}, {"root", "7"}});
  return worlds;
}

/// Worlds with roots, and two in which the root leaves adding up to the others.
std::vector<Defines> with_roots_and_leaves() {
  std::vector<Defines> worlds = with_roots();
  worlds.push_back({{"R", "4"}, {"root", "1"}, {"leaves", "true"}});
  worlds.push_back({{"R", "2"}, {"leaves", "true"}});
  return worlds;
}

/// Worlds with roots, and two whose packets have another format than the program's own.
std::vector<Defines> with_roots_and_formats() {
  std::vector<Defines> worlds = with_roots();
  worlds.push_back({{"R", "4"}, {"root", "2"}, {"F", "LL8"}});
  worlds.push_back({{"R", "3"}, {"root", "1"}, {"F", "LL128"}});
  return worlds;
}

/// The same, and two whose sums are added up by blocks of their own, in slices.
std::vector<Defines> with_roots_formats_and_slices() {
  std::vector<Defines> worlds = with_roots_and_formats();
  for (const auto& [root, format] : {std::pair{"1", "LL128"}, std::pair{"3", "LL16"}}) {
    worlds.push_back({{"R", "4"}, {"root", root}, {"F", format}, {"apart", "true"}, {"S", "2"}});
  }
  return worlds;
}

/// Formats, and one with a single copy of the scratch.
std::vector<Defines> with_roots_formats_and_copies() {
  std::vector<Defines> worlds = with_roots_and_formats();
  worlds.push_back({{"R", "4"}, {"root", "1"}, {"C", "1"}});
  return worlds;
}

/// Counts with pairs of ranks that have nothing to say to each other, one way or both, and with
/// ranks that send nothing, get nothing, or are not there at all.
std::vector<Defines> with_silent_pairs() {
  std::vector<Defines> worlds = ranks({2, 3, 4, 5, 8, 16});
  worlds.push_back({{"R", "2"}, {"counts", "1,0,0,2"}});
  worlds.push_back({{"R", "3"}, {"counts", "0,2,0,0,1,1,3,0,0"}});
  worlds.push_back({{"R", "2"}, {"counts", "0,3,0,0"}});
  worlds.push_back({{"R", "3"}, {"counts", "0,0,0,0,1,0,0,0,2"}});
  return worlds;
}

/// A value for each factor that makes the most of the pairs not yet seen, from a few random tries.
class PairwiseRows {
 public:
  explicit PairwiseRows(const std::vector<uint32_t>& levels) : levels_(levels) {
    for (const uint32_t n : levels) {
      first_.push_back(total_);
      total_ += n;
    }
    seen_.assign(static_cast<size_t>(total_) * total_, false);
    for (size_t i = 0; i < levels.size(); ++i) {
      for (size_t j = 0; j < i; ++j) missing_ += static_cast<size_t>(levels[i]) * levels[j];
    }
  }

  std::vector<std::vector<uint32_t>> make() {
    std::vector<std::vector<uint32_t>> rows;
    while (missing_ > 0) {
      std::vector<uint32_t> best;
      size_t best_gain = 0;
      for (int attempt = 0; attempt < 40 || best_gain == 0; ++attempt) {
        std::vector<uint32_t> row = random_row();
        const size_t gain = mark(row, false);
        if (gain > best_gain) {
          best_gain = gain;
          best = std::move(row);
        }
      }
      missing_ -= mark(best, true);
      rows.push_back(std::move(best));
    }
    return rows;
  }

 private:
  std::vector<uint32_t> random_row() {
    std::vector<uint32_t> row;
    for (const uint32_t n : levels_) {
      state_ = state_ * 6364136223846793005u + 1442695040888963407u;
      row.push_back(static_cast<uint32_t>((state_ >> 33) % n));
    }
    return row;
  }

  /// Counts the pairs of `row` not seen before; remembers them if `keep`.
  size_t mark(const std::vector<uint32_t>& row, bool keep) {
    size_t gain = 0;
    for (size_t i = 0; i < row.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const size_t pair = static_cast<size_t>(first_[i] + row[i]) * total_ + first_[j] + row[j];
        if (seen_[pair]) continue;
        ++gain;
        if (keep) seen_[pair] = true;
      }
    }
    return gain;
  }

  const std::vector<uint32_t>& levels_;
  std::vector<uint32_t> first_;
  uint32_t total_ = 0;
  std::vector<bool> seen_;
  size_t missing_ = 0;
  uint64_t state_ = 20;
};

}  // namespace

const std::vector<LibraryProgram>& library() {
  static const auto all = ranks({2, 3, 4, 5, 8, 16});
  static const auto formats = with_formats(all);
  static const auto apart = with_formats_apart(all);
  static const auto shapes = nodes({{4, 2}, {6, 2}, {6, 3}, {8, 4}, {16, 8}, {16, 4}, {3, 1}});
  static const auto between_nodes = with_blocks_and_instances(ranks({2, 3, 5}));
  static const std::vector<LibraryProgram> programs = {
      {"allgather_copy_engine", all},
      {"allgather_direct", with_own_blocks(all)},
      {"allgather_groups", all},
      {"allgather_hier", shapes},
      {"allgather_hier_packets", shapes},
      {"allgather_nodes", between_nodes},
      {"allgather_packets", apart},
      {"allgather_ring", all},
      {"allgather_switch", all},
      {"allgather_switch_packets", all},
      {"allreduce_1shot", formats},
      {"allreduce_1shot_ordered", all},
      {"allreduce_2shot", all},
      {"allreduce_2shot_packets", apart},
      {"allreduce_allpairs", all},
      {"allreduce_copy_engine", with_formats(all)},
      {"allreduce_halving_doubling", ranks({2, 4, 8, 16})},
      {"allreduce_hier", shapes},
      {"allreduce_hier_2shot", shapes},
      {"allreduce_hier_packets", shapes},
      {"allreduce_hier_pipeline", shapes},
      {"allreduce_hybrid", formats},
      {"allreduce_nodes", between_nodes},
      {"allreduce_push", with_slices(all)},
      {"allreduce_ring", all},
      {"allreduce_switch", all},
      {"allreduce_switch_direct", all},
      {"alltoall_copy_engine", all},
      {"alltoall_direct", with_own_blocks(all)},
      {"alltoall_hier", shapes},
      {"alltoall_hier_packets", shapes},
      {"alltoall_nodes", between_nodes},
      {"alltoall_packets", formats},
      {"alltoall_pipeline", all},
      {"alltoall_ring", all},
      {"alltoall_scratch", all},
      {"alltoallv", with_silent_pairs()},
      {"alltoallv_packets", with_silent_pairs()},
      {"broadcast_chain_packets", with_roots()},
      {"broadcast_direct", with_roots()},
      {"broadcast_hier", with_far_roots(shapes)},
      {"broadcast_hier_packets", with_far_roots(shapes)},
      {"broadcast_nodes", with_roots_between_nodes(between_nodes)},
      {"broadcast_packets", with_roots()},
      {"broadcast_scatter", with_roots()},
      {"broadcast_scatter_packets", with_roots()},
      {"broadcast_tree", with_roots()},
      {"gather_direct", with_roots()},
      {"gather_packets", with_roots_and_formats()},
      {"reduce_2shot_packets", with_roots_formats_and_slices()},
      {"reduce_chain_packets", with_roots_formats_and_copies()},
      {"reduce_direct", with_roots_and_leaves()},
      {"reduce_nodes", with_roots_and_shares(between_nodes)},
      {"reduce_packets", with_roots_and_formats()},
      {"reducescatter_direct", all},
      {"reducescatter_hier", shapes},
      {"reducescatter_hier_packets", shapes},
      {"reducescatter_nodes", between_nodes},
      {"reducescatter_packets", with_formats_apart_and_copies(all)},
      {"scatter_direct", with_roots()},
      {"scatter_packets", with_roots_and_formats()},
      {"sendrecv", all},
      {"sendrecv_get", all},
      {"sendrecv_hier_packets", with_shifts(shapes)},
      {"sendrecv_nodes", {{{"R", "2"}}, {{"R", "2"}, {"T", "2"}, {"I", "2"}}}},
      {"sendrecv_packets", formats},
      {"sendrecv_port", all},
  };
  return programs;
}

std::string library_text(std::string_view name) {
  return read_file(fmt::format("plans/{}.mscl", name)).value_or("");
}

std::string without_blocks(const std::string& text) {
  static const std::regex loop("\\btb (\\w+) in "), one("\\b(tb|group) [^{\n]*\\{");
  return std::regex_replace(std::regex_replace(text, loop, "for $1 in "), one, "if true {");
}

const std::vector<RunSize>& run_sizes() {
  static const std::vector<RunSize> sizes = {{0, 0},   {1, 0},    {3, 0},     {31, 0},
                                             {257, 0}, {0, 4096}, {0, 65544}, {0, 1 << 20}};
  return sizes;
}

CompiledWorld::CompiledWorld(std::string_view name, const Defines& defines,
                             const Variant& variant) {
  Sources sources;
  Diagnostics diagnostics;
  std::string text = library_text(name);
  if (variant.without_blocks) text = without_blocks(text);
  if (variant.blocked && text.find(", policy:") == std::string::npos) {
    text.insert(text.find("instances: I") + std::string_view("instances: I").size(),
                ", policy: blocked");
  }
  const FileId file = sources.add(fmt::format("{}.mscl", name), std::move(text));
  FrontEndOptions options;
  options.defines = defines;
  PassOptions passes;
  passes.verify_each = true;
  passes.max_thread_blocks = variant.max_thread_blocks;
  auto compiled = compile(sources, file, options, passes, diagnostics);
  errors_ = render_text(diagnostics, sources);
  if (!compiled) return;
  program_ = std::make_unique<Program>(std::move(*compiled));
  runner_ = std::make_unique<Simulator>(*program_);
}

std::vector<Dtype> CompiledWorld::dtypes() const {
  if (!program_->select.dtypes.empty()) return program_->select.dtypes;
  std::vector<Dtype> all;
  for (const DtypeInfo& t : dtype_table()) {
    if (program_->contract.columns == 0 || rows::can_be_t(t.dtype)) all.push_back(t.dtype);
  }
  return all;
}

std::vector<ReduceOp> CompiledWorld::reductions() const {
  if (!program_->contract.reduces()) return {ReduceOp::sum};
  if (!program_->select.ops.empty()) return program_->select.ops;
  return {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::prod, ReduceOp::avg};
}

std::vector<bool> CompiledWorld::in_place() const {
  switch (program_->contract.in_place) {
    case InPlace::yes:
      return {true};
    case InPlace::no:
      return {false};
    case InPlace::either:
      break;
  }
  return program_->contract.alias(0) ? std::vector<bool>{false, true} : std::vector<bool>{false};
}

uint64_t CompiledWorld::bytes(const RunSize& size, Dtype dtype) const {
  const Contract& contract = program_->contract;
  const uint64_t granule = program_->granule(dtype);
  uint64_t part = size.elements * info(dtype).bytes;
  if (contract.columns != 0) {  // whole rows
    if (size.elements == 0) part = size.bytes / contract.ranks;
    part = (part + granule - 1) / granule * granule;
  } else if (size.elements == 0) {
    return size.bytes;
  }
  return Chunking(contract, part, program_->granule(dtype)).message_bytes();
}

std::string CompiledWorld::run(const RunSpec& spec) {
  Diagnostics diagnostics;
  const RunResult result = runner_->run(spec, diagnostics);
  if (result.status == RunStatus::right && result.wrong == 0) return "";
  return fmt::format("{}: {} wrong\n{}", text(spec), result.wrong,
                     render_text(diagnostics, Sources()));
}

std::string text(const Defines& defines) {
  std::string out;
  for (const auto& [key, value] : defines) {
    out += fmt::format("{}{}={}", out.empty() ? "" : " ", key, value);
  }
  return out;
}

std::string text(const RunSpec& spec) {
  return fmt::format("{} bytes, {}, {}, {}, seed {}", spec.bytes, info(spec.dtype).name,
                     name(spec.op), spec.in_place.value_or(false) ? "in place" : "out of place",
                     spec.schedule_seed);
}

std::vector<std::vector<uint32_t>> pairwise(const std::vector<uint32_t>& levels) {
  return PairwiseRows(levels).make();
}

}  // namespace mscclc
