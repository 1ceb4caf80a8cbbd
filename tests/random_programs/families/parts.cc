// Parts: what is sent on in parts, each its own way: results of row functions in packets of several
// formats, and packets by several ports. A part may be empty, and some formats have no -0.0.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/random_programs/families/families.h"

namespace mscclc::random_programs {
namespace {

using Ops = std::vector<std::string>;

constexpr const char* kFormats[] = {"LL16", "LL16", "sentinel", "sentinel", "LL8", "LL128"};
constexpr const char* kOfPorts[] = {"LL16", "sentinel", "LL8"};

/// Two ranks that do the same.
class Parts {
 public:
  explicit Parts(Dice& dice) : dice_(dice), parts_(1 + dice.below(3)) {
    sketch_.family = "parts";
    sketch_.ranks.resize(2);
    connect(sketch_, "memory", "m", 0, 1);
  }

  Sketch make() {
    one_in(dice_, 2) ? results() : ports();
    return std::move(sketch_);
  }

 private:
  uint32_t any(uint32_t n) { return dice_.below(n); }
  std::string part(uint32_t p) const {
    return parts_ == 1 ? "" : fmt::format(" part: [{}, {}]", p, parts_);
  }
  void add_buffer(const BufferSketch& buffer) {
    for (RankSketch& rank : sketch_.ranks) rank.buffers.push_back(buffer);
  }
  void add(uint32_t rank, const Ops& ops) { sketch_.ranks[rank].ops(0, ops); }
  void maybe(uint32_t rank, const std::string& op) {
    if (!one_in(dice_, 3)) add(rank, {op});
  }

  /// Each rank makes one half of the results, and sends it on.
  void results() {
    static constexpr const char* kFunctions[] = {"T(x) * 2", "-(x - x)", "1 / (x - x)"};
    sketch_.rows.push_back(fmt::format("row f(x: row T) {{ out y: row T = {} }}",
                                       kFunctions[any(std::size(kFunctions))]));
    sketch_.collective = fmt::format("allreduce(ranks: 2, chunks: 2, columns: {}, then: f{})",
                                     8u << any(3), one_in(dice_, 2) ? ", inplace: false" : "");
    add_buffer({.name = "s", .copies = 2, .packets = "LL16"});
    add_buffer({.name = "x"});
    for (uint32_t p = 0; p < parts_; ++p) {
      add_buffer({.name = fmt::format("a{}", p),
                  .copies = 2,
                  .packets = kFormats[any(std::size(kFormats))]});
    }
    for (const uint32_t r : {0u, 1u}) {
      const uint32_t o = 1 - r;
      const auto own = fmt::format("output[{}]", r), far = fmt::format("output[{}]", o);
      add(r, {fmt::format("put_packets m.s[0] <- input[{}]", o)});
      add(r, {fmt::format("reduce_packets x[0] <- input[{}], s[0]", r), "sync"});
      add(r, {"apply f " + own + " <- x[0]", "sync"});
      for (uint32_t p = 0; p < parts_; ++p) {
        add(r, {fmt::format("put_packets m.a{}[0] <- {}{}", p, own, part(p))});
      }
      for (uint32_t p = 0; p < parts_; ++p) {
        add(r, {fmt::format("unpack_packets {} <- a{}[0]{}", far, p, part(p))});
      }
    }
  }

  /// Packets are sent on by ports, of which one has something else to do. What it reads is
  /// overwritten when it may have been flushed.
  void ports() {
    sketch_.collective = "custom(ranks: 2, input: 2, output: 2, inplace: false)";
    for (const uint32_t r : {0u, 1u}) {
      sketch_.promises.push_back(fmt::format("output[0] at {} = input[0] at {}", r, 1 - r));
      sketch_.promises.push_back(fmt::format("output[1] at {} = input[1] at {}", r, r));
    }
    const std::string packets = kOfPorts[any(std::size(kOfPorts))];
    sketch_.types = "[f32]";  // sentinels are of floats
    const uint32_t copies = one_in(dice_, 3) ? 1 : 2;
    for (const char* name : {"p", "q"}) {
      add_buffer({.name = name, .copies = copies, .packets = packets});
    }
    for (const char* name : {"s", "t"}) add_buffer({.name = name});
    for (const char* name : {"pa", "pb"}) connect(sketch_, "port", name, 0, 1);
    std::vector<std::string> by;
    for (uint32_t p = 0; p < parts_; ++p) by.push_back(one_in(dice_, 2) ? "pa" : "pb");
    const bool early = one_in(dice_, 3), meets = !one_in(dice_, 4);
    for (const uint32_t r : {0u, 1u}) {
      add(r,
          {"signal m", "wait m", "sync", "copy t[0] <- input[0]", "sync", "put pa.s[0] <- t[0]"});
      for (uint32_t p = 0; p < parts_; ++p) {
        add(r, {"put_packets m.p[0] <- input[1]" + part(p)});
      }
      if (meets) add(r, {"signal m", "wait m"});
      if (early) overwrite(r);
      for (uint32_t p = 0; p < parts_; ++p) {
        add(r, {fmt::format("read_put_packets {}.q[0] <- p[0]{}", by[p], part(p))});
      }
      if (!early) overwrite(r);
      add(r, {"signal pa", "wait pa", "sync", "copy output[0] <- s[0]"});
      for (uint32_t p = 0; p < parts_; ++p) {
        add(r, {"unpack_packets output[1] <- q[0]" + part(p)});
      }
      maybe(r, "flush pa");
      maybe(r, "flush pb");
    }
  }

  void overwrite(uint32_t rank) {
    if (one_in(dice_, 4)) add(rank, {"flush pa"});
    if (one_in(dice_, 2)) add(rank, {"sync"});
    add(rank, {"copy t[0] <- input[1]"});
  }

  Dice& dice_;
  const uint32_t parts_;
  Sketch sketch_;
};

}  // namespace

Sketch make_parts(Dice& dice) { return Parts(dice).make(); }

}  // namespace mscclc::random_programs
