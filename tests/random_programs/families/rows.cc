// Rows: sums, row functions and types of rows.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/random_programs/families/families.h"

namespace mscclc::random_programs {
namespace {

using Ops = std::vector<std::string>;

/// Two ranks that send each other their rows in packets.
class Rows {
 public:
  explicit Rows(Dice& dice) : dice_(dice) {
    sketch_.family = "rows";
    sketch_.ranks.resize(2);
    sketch_.rows.emplace_back("row twice(x: row T) { out y: row T = T(x) * 2 }");
    connect(sketch_, "memory", "c", 0, 1);
    connect(sketch_, "memory", "d", 0, 1);
    for (RankSketch& rank : sketch_.ranks) {
      rank.buffers.push_back({.name = "s", .copies = 2, .packets = "LL16"});
      for (const char* name : {"x", "y"}) rank.buffers.push_back({.name = name});
    }
  }

  Sketch make() {
    const uint32_t kind = any(6);
    kind < 2 ? results() : kind < 5 ? types() : in_place();
    sketch_.collective =
        fmt::format("allreduce(ranks: 2, columns: {}, then: twice, inplace: false)", columns_);
    return std::move(sketch_);
  }

 private:
  uint32_t any(uint32_t n) { return dice_.below(n); }

  void add(uint32_t rank, const Ops& ops) { sketch_.ranks[rank].ops(0, ops); }

  // ---- results that are stored in several ways

  /// The function of the sum, stored at a place.
  Ops computed(const std::string& place, bool own_first) {
    const std::string sum = own_first ? " <- input[0], s[0]" : " <- s[0], input[0]";
    switch (any(4)) {
      case 0:
        return {"reduce_packets x[0]" + sum, "sync", "apply twice " + place + " <- x[0]"};
      case 1:
        return {"reduce_packets x[0]" + sum + " then twice _ <- _", "sync",
                "copy " + place + " <- x[0]"};
      default:
        return {"reduce_packets " + place + sum + " then twice _ <- _"};
    }
  }

  /// One rank puts its result, or its sum, where the other makes its own; packets that the other
  /// needs may come late.
  void results() {
    columns_ = one_in(dice_, 4) ? 24 : 8;
    const uint32_t far = any(2), here = 1 - far;
    add(here, {"put_packets c.s[0] <- input[0]"});
    add(here, computed("output[0]", one_in(dice_, 2)));
    const bool late = !one_in(dice_, 3), parts = one_in(dice_, 2);
    const auto send = [&](uint32_t part) {
      add(far, {parts ? fmt::format("put_packets c.s[0] <- input[0] part: [{}, 2]", part)
                      : "put_packets c.s[0] <- input[0]"});
    };
    if (!late || parts) send(0);
    if (!late && parts) send(1);
    add(far, computed("output[0]", one_in(dice_, 2)));
    if (!one_in(dice_, 4)) {
      add(far, {"sync",
                one_in(dice_, 6) ? "put d.output[0] <- input[0]" : "put d.output[0] <- output[0]"});
      add(far, {"sync", "signal d"});
      meet(here);
    }
    if (late) send(parts ? 1 : 0);
  }

  /// The wait for what comes at `rank`: beside its ops, before or after them.
  void meet(uint32_t rank) {
    switch (any(6)) {
      case 0: {
        Ops& ops = sketch_.ranks[rank].straight(0).ops;
        ops.insert(ops.begin(), {"wait d", "sync"});
        return;
      }
      case 1:
        return add(rank, {"wait d"});
      default:
        return sketch_.ranks[rank].op(1, "wait d");
    }
  }

  // ---- rows of several types

  std::string part() { return one_in(dice_, 4) ? "" : fmt::format(" part: [{}, 2]", any(2)); }

  /// Rank 1 reads x, and sends what it has made of it, in rows of a type of their own. When rank 0
  /// has some of that, it stores in x what has come before.
  void types() {
    columns_ = one_in(dice_, 2) ? 16 : 32;
    static constexpr const char* kTypes[] = {"e4m3", "e4m3", "bf16", "f32", "T"};
    const std::string type = kTypes[any(5)];
    sketch_.rows.push_back("row other(x: row T) { out y: row " + type + " = x }");
    const std::string stored = type == "T" ? "" : type;
    for (RankSketch& rank : sketch_.ranks) {
      rank.buffers.push_back({.name = "w", .type = stored});
      rank.buffers.push_back({.name = "u", .copies = 2, .packets = "LL16", .type = stored});
      rank.buffers.push_back({.name = "v", .copies = 2, .packets = "LL16"});
    }
    add(0, {"copy x[0] <- input[0]", "sync", "signal c"});
    add(1, {"put_packets c.v[0] <- input[0]", "put_packets c.s[0] <- input[0]"});
    add(1, {"wait c", "sync", "get y[0] <- c.x[0]", "sync", "apply other w[0] <- y[0]", "sync"});
    add(1, {"put_packets c.u[0] <- w[0]", "reduce output[0] <- y[0], input[0] then twice _ <- _",
            "sync"});
    add(0,
        {"unpack_packets w[0] <- u[0]" + part(), "sync", "unpack_packets x[0] <- v[0]" + part()});
    add(0, {"put_packets c.v[0] <- input[0]",
            "reduce_packets output[0] <- input[0], s[0] then twice _ <- _"});
    add(1, {"unpack_packets y[0] <- v[0]", "sync", "signal c"});
    add(0, {"wait c"});
  }

  // ---- functions that store where they load

  void sync(uint32_t rank) {
    if (!one_in(dice_, 4)) add(rank, {"sync"});
  }

  /// No packets: threads know of each other what they know when they meet. One of the results comes
  /// of what was copied before.
  void in_place() {
    for (const uint32_t rank : {0u, 1u}) {
      add(rank, {"signal d", "wait d", "sync", "read_reduce x[0] <- input[0], d.input[0]"});
      sync(rank);
      add(rank, {"copy y[0] <- x[0]"});
      sync(rank);
      add(rank, {"apply twice x[0] <- x[0]"});
      sync(rank);
      add(rank, {one_in(dice_, 2) ? "apply twice output[0] <- y[0]" : "copy output[0] <- x[0]"});
      add(rank, {"sync", "signal d", "wait d"});
    }
  }

  Dice& dice_;
  Sketch sketch_;
  uint32_t columns_ = 8;
};

}  // namespace

Sketch make_rows(Dice& dice) { return Rows(dice).make(); }

}  // namespace mscclc::random_programs
