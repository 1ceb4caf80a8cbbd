// Source locations of a rank's ops as one flat list of integers (`loc` of FORMAT.md): short, since
// most locations differ from the one before in few values.
//
//   0                 the next op has no location
//   s+1 k v…          the next op; its location is at site s. The last k of the site's variables
//                     have the values v…, the others those they last had in this rank
//   -(s+1) k v…       another location of the same op
//   -(s+1) -1 n d     n more of the same op, at the same site as the one before; the last variable
//                     grows by d each time
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/program/program.h"
#include "plans/format/json/json_out.h"

namespace mscclc {

/// What values not written out may add up to, in relation to the bytes of a plan: bounds the memory
/// of a reader whatever a plan says. The writer keeps to it, rank by rank, by writing values out.
inline constexpr uint64_t kImpliedPerByte = 4;

class LocationWriter {
 public:
  LocationWriter(const Program& program, JsonOut& out) : program_(program), out_(out) {}
  /// `rank_bytes`: what the plan says of the rank besides.
  void begin_rank(uint64_t rank_bytes);
  /// Writes the locations of the next op, each number followed by a comma.
  void op(const Op& op);

 private:
  void location(const Location& location, bool first);
  size_t run_length(std::span<const Location> rest, int64_t& step);
  bool same_but_last(const Location& a, const Location& b) const;
  bool afford(uint64_t values);

  const Program& program_;
  JsonOut& out_;
  std::vector<int64_t> values_;  ///< by variable: what it last had in this rank
  std::vector<uint32_t> known_;  ///< by variable: the rank in which it had it
  uint32_t rank_ = 0;            ///< from 1
  uint64_t budget_ = 0;
};

/// Decodes what LocationWriter wrote into the ops of a rank, in their order.
class LocationReader {
 public:
  /// `plan_bytes`: size of the document.
  LocationReader(Program& program, uint64_t plan_bytes);
  void begin_rank(std::span<Op> ops);
  /// Takes the next number. Returns nullptr, or what is wrong with it.
  const char* take(int64_t number);
  /// What is wrong with a list that ends here, or nullptr.
  const char* end() const;

 private:
  enum class State : uint8_t { site, count, value, run_length, run_step };
  const char* take_site(int64_t number);
  const char* take_count(int64_t number);
  const char* take_value(int64_t number);
  const char* take_run_length(int64_t number);
  const char* take_run_step(int64_t step);
  void append();
  bool afford(uint64_t values);
  const Site& site() const { return program_.sites[site_]; }

  Program& program_;
  std::span<Op> ops_;
  uint64_t budget_;
  std::vector<int64_t> values_;   ///< by variable: what it last had in this rank
  std::vector<uint32_t> known_;   ///< by variable: the rank in which it had it
  uint32_t rank_ = 0;             ///< from 1
  std::vector<int64_t> current_;  ///< values of the last location
  State state_ = State::site;
  bool further_ = false;  ///< the location belongs to an op that has one
  uint32_t site_ = 0, last_site_ = 0;
  size_t missing_ = 0;  ///< values still to come
  size_t begun_ = 0;    ///< ops that have been dealt with, the present one included
  uint64_t run_ = 0;
};

}  // namespace mscclc
