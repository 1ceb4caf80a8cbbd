#include "tools/report/summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostics/printable.h"

namespace mscclc {
namespace {

// Smallest and largest of something counted per rank or per block.
struct Spread {
  uint64_t min = ~uint64_t{0}, max = 0, total = 0;
  void add(uint64_t n) {
    min = std::min(min, n);
    max = std::max(max, n);
    total += n;
  }
  std::string text() const {
    if (min > max) return "0";
    return min == max ? fmt::format("{}", max) : fmt::format("{} to {}", min, max);
  }
};

std::string line(std::string_view key, const std::string& value) {
  return fmt::format("  {:<12}{}\n", key, value);
}

std::string plural(const std::string& n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == "1" ? "" : "s");
}

std::string size_text(uint64_t bytes) {
  static constexpr std::pair<int, const char*> kUnits[] = {{30, "GiB"}, {20, "MiB"}, {10, "KiB"}};
  for (const auto& [shift, unit] : kUnits) {
    if (bytes != 0 && bytes % (uint64_t{1} << shift) == 0) {
      return fmt::format("{}{}", bytes >> shift, unit);
    }
  }
  return fmt::format("{}", bytes);
}

std::string dims_text(const std::vector<uint32_t>& dims) {
  if (dims.size() == 1) return plural(fmt::format("{}", dims[0]), "chunk");
  return fmt::format("[{}] chunks", fmt::join(dims, ", "));
}

std::string what(const Program& program) {
  const Contract& c = program.contract;
  std::string text =
      fmt::format("{} over {}", name(c.kind), plural(fmt::format("{}", c.ranks), "rank"));
  const std::vector<uint32_t> dims = c.kind == CollectiveKind::custom ? c.input : c.chunks;
  if (!dims.empty()) text += ", " + dims_text(dims);
  return text;
}

std::string in_place_text(const Contract& contract) {
  if (contract.in_place == InPlace::yes) return "in place only";
  const bool both = contract.in_place == InPlace::either && contract.can_alias();
  return both ? "in place or not" : "not in place";
}

std::string blocks_and_ops(const Program& program) {
  Spread blocks, rank_ops, block_ops;
  for (const Rank& rank : program.ranks) {
    blocks.add(rank.blocks);
    rank_ops.add(rank.ops.size());
    std::vector<uint64_t> counts(rank.blocks);
    for (const Op& op : rank.ops) {
      if (op.block < counts.size()) ++counts[op.block];
    }
    for (const uint64_t n : counts) block_ops.add(n);
  }
  return line("blocks",
              fmt::format("{} per rank, {} threads each", blocks.text(), program.launch.threads)) +
         line("ops", fmt::format("{} in all, {} per rank, {} per block", rank_ops.total,
                                 rank_ops.text(), block_ops.text()));
}

std::string channels(const Program& program) {
  std::string text;
  for (const ChannelKind kind : {ChannelKind::memory, ChannelKind::port, ChannelKind::switch_}) {
    Spread spread;
    for (const Rank& rank : program.ranks) {
      spread.add(
          static_cast<uint64_t>(std::count_if(rank.channels.begin(), rank.channels.end(),
                                              [&](const Channel& c) { return c.kind == kind; })));
    }
    if (spread.max == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", spread.text(), name(kind));
  }
  return line("channels", text.empty() ? "none" : text + " per rank");
}

// Scratch of a rank in bytes, for chunks of `longest` bytes.
uint64_t scratch_bytes(const Rank& rank, uint64_t longest) {
  uint64_t bytes = 0;
  for (const Buffer& b : rank.buffers) {
    if (b.kind != BufferKind::scratch) continue;
    const PacketFormatInfo& unit = info(b.packets);
    const uint64_t plain = b.units == 0 ? longest : std::min(longest, b.units * b.unit);
    const uint64_t chunk =
        b.packets == PacketFormat::none ? plain : (longest + unit.data - 1) / unit.data * unit.wire;
    bytes += chunk * b.chunks * b.copies;
  }
  return bytes;
}

// A message so large that rounding does not show, and so small that nothing overflows.
constexpr uint64_t kLargePart = uint64_t{1} << 32;

std::string scratch(const Program& program) {
  const Chunking chunking(program.contract, kLargePart, program.launch.align);
  uint64_t most = 0, input = 0;
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    most = std::max(most, scratch_bytes(program.ranks[r], chunking.longest()));
    input = std::max(input, chunking.buffer_bytes(Side::input, r));
  }
  if (most == 0) return line("scratch", "none");
  if (input == 0) return line("scratch", "some, for no input");
  return line("scratch", fmt::format("{:.4g} bytes per input byte",
                                     static_cast<double>(most) / static_cast<double>(input)));
}

std::string sizes(const Program& program) {
  const Range& r = program.select.sizes;
  if (r.min == 0 && r.max == ~uint64_t{0}) return line("sizes", "all");
  const std::string end = r.max == ~uint64_t{0} ? "" : size_text(r.max + 1);
  return line("sizes", fmt::format("{}..{}", size_text(r.min), end));
}

}  // namespace

double memory_needed(const Program& program, uint64_t bytes) {
  const Chunking chunking(program.contract, kLargePart, program.launch.align);
  if (chunking.message_bytes() == 0) return 0;
  double all = 0;
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    all += static_cast<double>(scratch_bytes(program.ranks[r], chunking.longest()));
    all += static_cast<double>(chunking.buffer_bytes(Side::input, r));
    all += static_cast<double>(chunking.buffer_bytes(Side::output, r));
  }
  return all / static_cast<double>(chunking.message_bytes()) * static_cast<double>(bytes);
}

std::string summarize(const Program& program) {
  const std::string name = program.name.empty() ? "(no name)" : printable_line(program.name);
  return fmt::format("{}: {}, {}\n", name, what(program), in_place_text(program.contract)) +
         blocks_and_ops(program) + channels(program) + scratch(program) + sizes(program);
}

std::string sums_text(const Proof& proof) {
  if (proof.rounding == Rounding::none) return "";
  const SumOrders& orders = proof.orders;
  std::string text = orders.exact ? "exact sums" : "sums";
  if (orders.ranks) text += " in rank order";
  if (orders.tree) text += orders.ranks ? " and along the tree" : " along the tree";
  if (!orders.ranks && !orders.tree && !orders.exact) text = "same bits on all ranks";
  if (!orders.replicated) text = "not bit-identical across ranks";
  // An exact sum has the ranks' inputs themselves as its terms.
  const bool on_the_way = proof.rounding == Rounding::each_op && !orders.exact;
  return text + (on_the_way ? ", rounded on the way in 16 and 8 bit types" : "");
}

std::string between_calls_text(BetweenCalls between) {
  switch (between) {
    case BetweenCalls::meeting:
      return "no rank leaves a call before all are in it";
    case BetweenCalls::copies:
      return "it uses other copies of scratch, so a rank may be some calls ahead";
    case BetweenCalls::signals:
      break;
  }
  return "ranks that exchange data wait for one another's signals, others may be any calls apart";
}

std::string summarize(const Proof& proof) {
  std::string text = proof.out_of_place ? "out of place" : "in place";
  if (proof.out_of_place && proof.in_place) text += " and in place";
  if (const std::string sums = sums_text(proof); !sums.empty()) text += ", " + sums;
  if (proof.out_of_place) text += proof.keeps_input ? ", input kept" : ", input overwritten";
  switch (proof.between_calls) {
    case BetweenCalls::meeting:
      return text + ", synchronizes all ranks";
    case BetweenCalls::copies:
      return text + ", double-buffered scratch";
    case BetweenCalls::signals:
      break;
  }
  return text;
}

}  // namespace mscclc
