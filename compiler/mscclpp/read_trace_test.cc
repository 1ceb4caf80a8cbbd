// Words that come from Python: what is no trace is refused, whatever it is.
#include "compiler/mscclpp/read_trace.h"

#include <catch2/catch.hpp>
#include <random>

#include "compiler/mscclpp/passes.h"
#include "compiler/mscclpp/write_plan.h"

namespace mscclc::mscclpp {
namespace {

uint64_t row_of(OpKind kind) { return static_cast<uint64_t>(kind); }

using Trace = std::vector<uint64_t>;

/// Two ranks that exchange a chunk, with every kind of record.
Trace sample() {
  Trace words = {kTraceFormat, 1, kFusion | kAutoSync | kLimits, 2, 2, 2, 4, 2, 2, 4, kCode, 1};
  auto add = [&](std::initializer_list<uint64_t> record) { words.insert(words.end(), record); };
  for (uint64_t rank : {0, 1}) {
    add({kChannel, 0, rank, 1 - rank});
    add({kSemaphore, rank, 1});
  }
  add({kSwitch, 0, 2, 0, 1});
  for (uint64_t rank : {0, 1}) {
    add({row_of(OpKind::signal), rank, 0, 3, 10});
    add({row_of(OpKind::wait), rank, 0, 3, 12});
    add({row_of(OpKind::put), rank, 0, 4 * rank + 1, 4 * rank + 1, 1, 14});
    add({kGroup, 2, 2, 0, 0, 1, 1});
    add({row_of(OpKind::copy), rank, 0, 2, 0, 1, 16});
    add({kLoop, 1024, 1, 18});
    add({row_of(OpKind::read_reduce) | 1 << 8, rank, 0, 0, 0, 1, 20, 4, 1});
    add({row_of(OpKind::acquire), rank, 0, 0, 0, 22});
    add({kEndOfLoop});
    add({row_of(OpKind::reduce) | 1 << 8, rank, 0, 0, 0, 1, 24, 2, 1});
    add({row_of(OpKind::barrier), rank, 26, 2, 0, 1});
    add({row_of(OpKind::switch_reduce), 2, rank, 1, 0, 1, 1, 28, 1});
    add({row_of(OpKind::switch_broadcast), 2, rank, 1, 0, 1, 1, 30, 0});
    add({row_of(OpKind::sync), rank, 0, 32});
  }
  return words;
}

/// Whether it is a trace; what can be done with one is done.
bool read_and_write(const Trace& words) {
  auto program = read_trace(words);
  if (!program) return false;
  if (check_signals(*program) || check_blocks(*program)) return true;
  run_passes(*program);
  check_limits(*program);
  check_sums(*program);
  CHECK_FALSE(write_gpus(*program, {}).empty());
  CHECK(write_places(*program).size() >= program->ranks.size());
  return true;
}

TEST_CASE("a trace with all kinds of records is read") {
  const Trace words = sample();
  auto program = read_trace(words);
  REQUIRE(program);
  CHECK(program->blocks.size() == 4);
  CHECK_FALSE(check_signals(*program));
  run_passes(*program);
  CHECK_FALSE(check_limits(*program));
  CHECK_FALSE(check_sums(*program));
  CHECK(read_and_write(words));
}

TEST_CASE("ops that name channels are fused as far as an op has room for them") {
  // Of nine memory channels, gets name theirs; of puts up to ten are one op.
  for (const auto& [kind, ops] :
       {std::pair{OpKind::get, size_t{2}}, std::pair{OpKind::put, size_t{1}}}) {
    Trace words = {kTraceFormat, 1, kFusion | kLimits, 2, 9, 9, 9, 9, 9, 9, kChannel, 0, 0, 1};
    for (uint64_t i = 0; i < 9; ++i) {
      const uint64_t chunk = 4 * i;
      words.insert(words.end(), {row_of(kind), 0, 0, chunk + 1, chunk, 1, 10});
    }
    auto program = read_trace(words);
    REQUIRE(program);
    run_passes(*program);
    CHECK(program->blocks[0].ops.size() == ops);
    CHECK_FALSE(check_limits(*program));
    program->blocks[0].ops[0].ids.count = 9;
    CHECK(check_limits(*program).has_value() == (kind == OpKind::get));
  }
}

TEST_CASE("a trace that ends early is a shorter one or none") {
  Trace words = sample();
  while (!words.empty()) {
    words.pop_back();
    read_and_write(words);
  }
  CHECK_FALSE(read_and_write(words));
}

TEST_CASE("a trace of another format is none") {
  Trace words = sample();
  words[0] = kTraceFormat + 1;
  CHECK_FALSE(read_and_write(words));
}

TEST_CASE("words that are wrong do no harm") {
  std::mt19937_64 random(3);
  const Trace right = sample();
  size_t refused = 0;
  for (int i = 0; i < 20000; ++i) {
    Trace words = right;
    for (uint64_t changes = 1 + random() % 2; changes > 0; --changes) {
      const uint64_t bits = random() % 64;
      words[1 + random() % (words.size() - 1)] = random() >> bits;
    }
    words[1] %= 4;  // a plan of many instances is right, and large
    if (!read_and_write(words)) ++refused;
  }
  CHECK(refused > 1000);
}

}  // namespace
}  // namespace mscclc::mscclpp
