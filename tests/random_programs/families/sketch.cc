#include "tests/random_programs/families/sketch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace mscclc::random_programs {
namespace {

/// Writes what a rank owns and does.
class RankWriter {
 public:
  RankWriter(const RankSketch& rank, std::string& out) : rank_(rank), out_(out) {}

  void declarations() {
    for (const BufferSketch& b : rank_.buffers) {
      out_ += fmt::format("  buffer {}[{}]", b.name, b.chunks);
      std::string separator = " ";
      const auto option = [&](const std::string& text) {
        out_ += separator + text;
        separator = ", ";
      };
      if (!b.packets.empty()) option("packets: " + b.packets);
      if (!b.type.empty()) option("type: " + b.type);
      if (b.copies != 1) option(fmt::format("copies: {}", b.copies));
      if (b.units != 0) option(fmt::format("units: {}", b.units));
      out_ += '\n';
    }
    for (const std::string& channel : rank_.channels) out_ += "  " + channel + '\n';
    for (const SemaphoreSketch& s : rank_.semaphores) {
      out_ += fmt::format("  semaphore {} = {}\n", s.name, s.initial);
    }
  }

  /// Block by block, as IR text has them.
  void blocks() {
    for (size_t b = 0; b < rank_.blocks.size(); ++b) {
      if (!has_ops(rank_.blocks[b])) continue;
      out_ += fmt::format("  tb {} {{\n", b);
      for (const Stretch& s : rank_.blocks[b]) {
        if (s.ops.empty()) continue;
        if (s.unit != 0)
          out_ += fmt::format("    pipeline unit: {}{}, loop: {} {{\n", s.unit, over(s), s.loop);
        lines(s.ops);
        if (s.unit != 0) out_ += "    }\n";
      }
      out_ += "  }\n";
    }
  }

  /// In an order in which a reader would write it: straight stretches as far as they go, then the
  /// next pipeline with all blocks that have come to it.
  void in_order() {
    at_.assign(rank_.blocks.size(), 0);
    for (;;) {
      for (size_t b = 0; b < rank_.blocks.size(); ++b) {
        while (const Stretch* s = next(b)) {
          if (s->unit != 0) break;
          in_block(b, *s);
          ++at_[b];
        }
      }
      const Stretch* first = nullptr;
      for (size_t b = 0; b < rank_.blocks.size(); ++b) {
        const Stretch* s = next(b);
        if (s != nullptr && (first == nullptr || s->loop < first->loop)) first = s;
      }
      if (first == nullptr) return;
      pipeline(*first);
    }
  }

 private:
  static bool has_ops(const std::vector<Stretch>& block) {
    return std::ranges::any_of(block, [](const Stretch& s) { return !s.ops.empty(); });
  }

  const Stretch* next(size_t b) const {
    return at_[b] < rank_.blocks[b].size() ? &rank_.blocks[b][at_[b]] : nullptr;
  }

  void lines(const std::vector<std::string>& ops) {
    for (const std::string& op : ops) out_ += "      " + op + '\n';
  }

  void in_block(size_t b, const Stretch& s) {
    if (s.ops.empty()) return;
    out_ += fmt::format("  tb {} {{\n", b);
    lines(s.ops);
    out_ += "  }\n";
  }

  static std::string over(const Stretch& s) {
    return s.chunks == 1 ? "" : fmt::format(", chunks: {}", s.chunks);
  }

  void pipeline(const Stretch& first) {
    const uint32_t loop = first.loop, unit = first.unit;
    const std::string options = fmt::format("{}{}", unit, over(first));
    std::string body;
    std::swap(body, out_);
    for (size_t b = 0; b < rank_.blocks.size(); ++b) {
      const Stretch* s = next(b);
      if (s == nullptr || s->loop != loop || s->unit != unit) continue;
      in_block(b, *s);
      ++at_[b];
    }
    std::swap(body, out_);
    if (!body.empty()) out_ += fmt::format("  pipeline unit: {} {{\n{}  }}\n", options, body);
  }

  const RankSketch& rank_;
  std::string& out_;
  std::vector<size_t> at_;  ///< by block: the next stretch
};

bool names(const std::string& op, const std::string& buffer) {
  for (size_t at = 0; (at = op.find(buffer + "[", at)) != std::string::npos; ++at) {
    if (at == 0 || op[at - 1] == ' ' || op[at - 1] == '.') return true;
  }
  return false;
}

/// Units that no pipeline uses are a mistake in programs and in IR.
bool uses(const Sketch& sketch, const std::string& buffer) {
  for (const RankSketch& rank : sketch.ranks) {
    for (const auto& block : rank.blocks) {
      for (const Stretch& s : block) {
        for (const std::string& op : s.ops) {
          if (names(op, buffer)) return true;
        }
      }
    }
  }
  return false;
}

/// In IR sums say themselves that they are whole, as those must be that become rows.
void mark_sums(RankSketch& rank) {
  for (std::vector<Stretch>& block : rank.blocks) {
    for (Stretch& stretch : block) {
      for (std::string& op : stretch.ops) {
        if (op.starts_with("reduce") || op.starts_with("read_reduce")) op += " complete";
      }
    }
  }
}

}  // namespace

Stretch& RankSketch::straight(uint32_t block) {
  if (blocks.size() <= block) blocks.resize(block + 1);
  std::vector<Stretch>& own = blocks[block];
  if (own.empty() || own.back().unit != 0) own.emplace_back();
  return own.back();
}

std::string text(const Sketch& sketch, Form form) {
  const bool ir = form == Form::ir || form == Form::foreign;
  std::string out = ir ? "ir 1\n" : "";
  out += "program    random\n";
  for (const std::string& function : sketch.rows) out += function + '\n';
  out += fmt::format("collective {}\n", sketch.collective);
  for (const std::string& promise : sketch.promises) out += "ensure     " + promise + '\n';
  if (!sketch.types.empty()) out += fmt::format("select     dtypes: {}\n", sketch.types);
  std::vector<std::string> launch;
  if (form == Form::written) launch.emplace_back("auto_sync: false");
  if (sketch.reuse_scratch) launch.emplace_back("reuse_scratch: true");
  if (sketch.align != 0) launch.push_back(fmt::format("align: {}", sketch.align));
  if (ir) launch.emplace_back("split: true");
  if (form == Form::foreign) launch.emplace_back("foreign: true");
  if (!launch.empty()) out += fmt::format("launch     {}\n", fmt::join(launch, ", "));
  for (size_t r = 0; r < sketch.ranks.size(); ++r) {
    RankSketch rank = sketch.ranks[r];
    std::erase_if(rank.buffers, [&](const BufferSketch& b) { return !uses(sketch, b.name); });
    if (ir && !sketch.rows.empty()) mark_sums(rank);
    out += fmt::format("\nrank {} {{\n", r);
    RankWriter writer(rank, out);
    writer.declarations();
    if (ir) {
      writer.blocks();
    } else {
      writer.in_order();
    }
    out += "}\n";
  }
  return out;
}

void connect(Sketch& sketch, const std::string& kind, const std::string& name, uint32_t a,
             uint32_t b, uint32_t credits) {
  const std::string begins = credits > 0 ? fmt::format(" credits: {}", credits) : "";
  sketch.ranks[a].channels.push_back(
      fmt::format("channel {} = {}({}) to {}{}", name, kind, b, name, begins));
  sketch.ranks[b].channels.push_back(fmt::format("channel {} = {}({}) to {}", name, kind, a, name));
}

}  // namespace mscclc::random_programs
