#include "tools/calibrate/probes.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/compile.h"
#include "plans/format/embedded_library.h"

namespace mscclc::calibrate {
namespace {

/// The programs of this folder, each after its file's name.
constexpr LibraryFile kPrograms[] = {
#include "tools/calibrate/probe_programs.inc"
};

constexpr uint64_t kKiB = 1024, kMiB = 1024 * kKiB;

std::string_view text_of(const std::string& program) {
  const std::string file = program + ".mscl";
  for (const LibraryFile& f : kPrograms) {
    if (f.name == file) return f.text;
  }
  for (const LibraryFile& f : embedded_library()) {
    if (f.name == file) return f.text;
  }
  return {};
}

class List {
 public:
  explicit List(const ProbeLimits& limits) : limits_(limits) {}

  /// Leaves out what is larger than the machine can do.
  void add(const std::string& program, std::vector<std::pair<std::string, std::string>> params,
           uint64_t bytes) {
    if (bytes > limits_.max_bytes) return;
    uint64_t blocks = 1, times = 1;
    for (const auto& [name, value] : params) {
      if (name == "B") blocks = std::stoul(value);
      if (name == "apart" && value == "true") times = 2;
      if (name == "F" && value == "LL128" && !limits_.lines) return;
    }
    // Some programs have one more, which meets the partner.
    if (blocks > 1 && blocks * times >= limits_.max_blocks) return;
    params.insert(params.begin(), {"R", std::to_string(limits_.ranks)});
    probes_.push_back({program, std::move(params), bytes});
  }

  std::vector<Probe> take() { return std::move(probes_); }

 private:
  const ProbeLimits& limits_;
  std::vector<Probe> probes_;
};

/// Launches, steps, syncs, barriers, sums, and a GPU's memory.
void add_local(List& list) {
  for (const char* blocks : {"1", "8", "32", "60", "120"}) {
    list.add("local_copies", {{"B", blocks}}, 4 * kKiB);
  }
  for (const char* hops : {"4", "32"}) list.add("local_copies", {{"K", hops}}, 4 * kKiB);
  for (const char* pieces : {"4", "32"}) {
    list.add("local_spread", {{"K", pieces}}, 4 * kKiB * std::stoul(pieces));
  }
  list.add("local_copies", {{"T", "64"}}, 64 * kKiB);
  for (const uint64_t bytes : {256 * kKiB, 4 * kMiB}) list.add("local_copies", {}, bytes);
  for (const char* blocks : {"60", "120"}) list.add("local_copies", {{"B", blocks}}, 64 * kMiB);
  for (const char* operands : {"2", "8", "16"}) {
    list.add("local_sums", {{"N", operands}}, 16 * std::stoul(operands) * kKiB);
  }
  for (const char* times : {"2", "24"}) {
    list.add("block_meetings", {{"B", "4"}, {"K", times}}, 4 * kKiB);
  }
}

/// Ways to another GPU of the node: latency, signals, fences, packets, rates.
void add_links(List& list, const std::string& many_hops) {
  for (const char* times : {"1", "24"}) list.add("meetings", {{"K", times}}, 0);
  for (const uint64_t bytes : {uint64_t{64}, 16 * kKiB}) {
    list.add("hops_of_puts", {{"K", "1"}}, bytes);
    list.add("hops_of_puts", {{"K", many_hops}}, bytes);
  }
  list.add("hops_of_puts", {{"K", "1"}}, kMiB);
  list.add("hops_of_puts", {{"K", "1"}, {"B", "16"}}, 16 * kMiB);
  for (const char* blocks : {"60", "120"}) {
    list.add("hops_of_puts", {{"K", "1"}, {"B", blocks}}, 64 * kMiB);
  }
  for (const char* format : {"LL8", "LL16", "LL128", "sentinel"}) {
    for (const uint64_t bytes : {uint64_t{64}, 16 * kKiB}) {
      list.add("hops_of_packets", {{"K", "1"}, {"F", format}}, bytes);
      list.add("hops_of_packets", {{"K", many_hops}, {"F", format}}, bytes);
    }
    list.add("hops_of_packets", {{"K", "1"}, {"F", format}, {"B", "16"}}, kMiB);
    list.add("hops_of_packets", {{"K", many_hops}, {"F", format}, {"B", "16"}}, 256 * kKiB);
  }
  // Few threads: their rounds take longer than the block's share of the link.
  for (const std::string& hops : {std::string("1"), many_hops}) {
    list.add("hops_of_puts", {{"K", hops}, {"T", "64"}}, 4 * kKiB);
    list.add("hops_of_packets", {{"K", hops}, {"F", "LL16"}, {"T", "64"}}, 4 * kKiB);
  }
  list.add("allreduce_1shot_ordered", {{"F", "LL16"}, {"B", "4"}, {"T", "256"}}, 8 * kKiB);
  list.add("allreduce_2shot_packets", {{"F", "LL128"}, {"B", "48"}, {"T", "256"}}, kMiB);
  list.add("allreduce_2shot_packets", {{"F", "LL128"}, {"B", "96"}, {"T", "256"}}, kMiB);
  // Of the larger blocks a GPU has no room for two calls.
  for (const char* threads : {"256", "512"}) {
    list.add("allreduce_1shot_ordered", {{"F", "LL128"}, {"B", "96"}, {"T", threads}}, 256 * kKiB);
  }
  // Sums of packets in each format, by the blocks that send and by others.
  for (const char* format : {"LL8", "sentinel"}) {
    list.add("allreduce_1shot_ordered", {{"F", format}, {"B", "4"}, {"T", "256"}}, 8 * kKiB);
    list.add("allreduce_2shot_packets", {{"F", format}, {"B", "48"}, {"T", "256"}}, kMiB);
  }
  for (const char* blocks : {"16", "60"}) {
    list.add("allreduce_2shot_packets",
             {{"F", "LL128"}, {"B", blocks}, {"T", "512"}, {"apart", "true"}}, kMiB);
  }
  list.add("allreduce_2shot_packets",
           {{"F", "sentinel"}, {"B", "60"}, {"T", "512"}, {"apart", "true"}}, kMiB);
  list.add("allgather_direct", {{"B", "32"}, {"T", "512"}}, 4 * kMiB);
}

/// Proxies, and what they hand requests to: copy engines, or the network.
void add_ports(List& list, const std::string& many_hops) {
  for (const uint64_t bytes : {uint64_t{64}, 16 * kKiB, 128 * kKiB}) {
    list.add("hops_by_ports", {{"K", "1"}}, bytes);
    list.add("hops_by_ports", {{"K", many_hops}}, bytes);
  }
  // Into the output: no block copies what has come.
  for (const uint64_t bytes : {64 * kKiB, kMiB, 16 * kMiB, 64 * kMiB}) {
    list.add("sendrecv_port", {{"B", "1"}}, bytes);
    list.add("sendrecv_port", {{"B", "4"}}, bytes);
  }
}

}  // namespace

std::string Probe::name() const {
  std::string text = program;
  for (const auto& [key, value] : params) {
    if (key != "R") text += fmt::format(" {}={}", key, value);
  }
  return text;
}

std::vector<Probe> probes_for(const ProbeLimits& limits) {
  List list(limits);
  // After so many hops the data has left its rank, whatever the number of ranks.
  const std::string many_hops =
      std::to_string(1 + (8 + limits.ranks - 1) / limits.ranks * limits.ranks);
  add_local(list);
  if (!limits.network) add_links(list, many_hops);
  add_ports(list, many_hops);
  return list.take();
}

std::shared_ptr<const Program> compile_probe(const Probe& probe, Diagnostics& diagnostics) {
  Sources sources;
  const FileId file = sources.add(probe.program + ".mscl", std::string(text_of(probe.program)));
  FrontEndOptions options;
  options.defines = probe.params;
  std::optional<Program> program = compile(sources, file, options, {}, diagnostics);
  return program ? std::make_shared<const Program>(*std::move(program)) : nullptr;
}

}  // namespace mscclc::calibrate
