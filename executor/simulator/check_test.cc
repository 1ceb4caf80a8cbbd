// Wrong results are found and reported; right ones of every collective pass.
#include "executor/simulator/check.h"

#include <catch2/catch.hpp>

#include "executor/simulator/run.h"
#include "executor/testing/test_plans.h"

namespace mscclc {
namespace {

using namespace testing;
using Kind = OpKind;

std::string text_of_check(const Diagnostics& d) { return render_text(d, Sources{}, 100); }

TEST_CASE("wrong elements are counted and the first are reported") {
  TestProgram t = one_shot(2, 1, PacketFormat::LL16);
  // Rank 1 adds its own input twice and leaves out rank 0's.
  Op& op = t.program.ranks[1].ops[1];
  op.kind = Kind::reduce;
  t.program.set_operands(op, std::vector<Operand>{local(kOutput, 0)},
                         std::vector<Operand>{local(kInput, 0), local(kInput, 0)});
  Diagnostics diagnostics;
  const RunResult result = simulate(t.program, {.bytes = 20, .dtype = Dtype::i32}, diagnostics);
  CHECK(result.status == RunStatus::wrong);
  CHECK(result.wrong == 5);
  const std::string text = text_of_check(diagnostics);
  CHECK(text.find(
            "error: rank 1: 5 wrong elements in 'output'\nnote: call 0, element 0: expected ") ==
        0);
  CHECK(text.find("element 3:") != std::string::npos);
  CHECK(text.find("element 4:") == std::string::npos);
}

TEST_CASE("an output that is not written is wrong, in place too") {
  TestProgram t(2, 1);
  for (uint32_t r = 0; r < 2; ++r) add_op(t, r, 0, Kind::sync, {});
  for (const bool in_place : {false, true}) {
    Diagnostics diagnostics;
    const RunSpec spec{.bytes = 4000, .in_place = in_place};
    const RunResult result = simulate(t.program, spec, diagnostics);
    CHECK(result.status == RunStatus::wrong);
    CHECK(result.wrong > 1900);
  }
}

/// A plan of `kind` in which every rank reads what it needs from the others' inputs.
TestProgram reading(CollectiveKind kind, uint32_t ranks, std::vector<uint32_t> chunks) {
  TestProgram t(ranks, 1);
  Contract& c = t.program.contract;
  c.kind = kind;
  c.chunks = std::move(chunks);
  c.root = 1;
  c.shift = 2;
  c.counts.assign(size_t{ranks} * ranks, 0);
  for (uint32_t i = 0; i < ranks * ranks; ++i) c.counts[i] = i % 3;
  connect_all(t, ChannelKind::memory);
  for (uint32_t r = 0; r < ranks; ++r) {
    Rank& rank = t.program.ranks[r];
    rank.buffers[kInput].chunks = c.shape(Side::input, r).chunks();
    rank.buffers[kOutput].chunks = c.shape(Side::output, r).chunks();
    std::vector<Operand> ends;
    for (uint32_t p = 0; p + 1 < ranks; ++p) ends.push_back(end_of(p));
    add_op(t, r, 0, Kind::signal, ends);
    add_op(t, r, 0, Kind::wait, ends);
    const auto place = [&](const CallerChunk& p) {
      return p.rank == r ? local(kInput, p.chunk) : far(mesh(r, p.rank), kInput, p.chunk);
    };
    for (uint32_t chunk = 0; chunk < rank.buffers[kOutput].chunks; ++chunk) {
      const Promise promise = c.promise(r, chunk).value();
      if (promise.inputs.size() == 1) {
        const bool own = promise.inputs[0].rank == r;
        add_op(t, r, 0, own ? Kind::copy : Kind::get, {local(kOutput, chunk)},
               {place(promise.inputs[0])});
        continue;
      }
      std::vector<Operand> sources = {place({r, promise.inputs[r].chunk})};
      for (const CallerChunk& p : promise.inputs) {
        if (p.rank != r) sources.push_back(place(p));
      }
      add_op(t, r, 0, Kind::read_reduce, {local(kOutput, chunk)}, sources).complete = true;
    }
    add_op(t, r, 0, Kind::signal, ends);
    add_op(t, r, 0, Kind::wait, ends);
  }
  return t;
}

TEST_CASE("every collective, sizes that cut unevenly") {
  constexpr CollectiveKind kKinds[] = {CollectiveKind::allreduce,     CollectiveKind::reduce,
                                       CollectiveKind::allgather,     CollectiveKind::gather,
                                       CollectiveKind::alltoall,      CollectiveKind::alltoallv,
                                       CollectiveKind::reducescatter, CollectiveKind::scatter,
                                       CollectiveKind::broadcast,     CollectiveKind::sendrecv};
  for (const CollectiveKind kind : kKinds) {
    for (const std::vector<uint32_t>& chunks : {std::vector<uint32_t>{1}, {3}, {2, 3}}) {
      const TestProgram t = reading(kind, 3, chunks);
      Simulator runner(t.program);
      for (const DtypeInfo& type : dtype_table()) {
        for (const uint64_t elements : {0, 3, 9, 27, 270, 2997}) {
          Diagnostics diagnostics;
          const RunResult result = runner.run(
              {.bytes = elements * type.bytes, .dtype = type.dtype, .schedule_seed = elements},
              diagnostics);
          INFO(name(kind) << ' ' << chunks.size() << ' ' << type.name << ' ' << elements << '\n'
                          << text_of_check(diagnostics));
          REQUIRE(result.status == RunStatus::right);
          if (kind != CollectiveKind::alltoallv) REQUIRE(result.count == elements);
        }
      }
    }
  }
}

TEST_CASE("a rank that leaves a barrier early is reported") {
  TestProgram t(2, 1);
  t.program.contract.kind = CollectiveKind::barrier;
  for (Rank& rank : t.program.ranks) rank.buffers[kInput].chunks = rank.buffers[kOutput].chunks = 0;
  connect_all(t, ChannelKind::memory);
  add_op(t, 0, 0, Kind::signal, {end_of(0)});
  add_op(t, 1, 0, Kind::wait, {end_of(0)});
  add_op(t, 1, 0, Kind::signal, {end_of(0)});
  Diagnostics wrong;
  const RunResult result = simulate(t.program, {.iterations = 2}, wrong);
  CHECK(result.status == RunStatus::wrong);
  CHECK(text_of_check(wrong) == "error: rank 0 leaves the barrier before all are in\n");
  add_op(t, 0, 0, Kind::wait, {end_of(0)});
  for (uint64_t seed = 0; seed < 10; ++seed) {
    Diagnostics diagnostics;
    const RunSpec spec{.iterations = 3, .schedule_seed = seed};
    CHECK(simulate(t.program, spec, diagnostics).status == RunStatus::right);
  }
}

TEST_CASE("runs that cannot be") {
  TestProgram t = one_shot(2, 2, PacketFormat::LL16);
  const auto refusal = [&](const RunSpec& spec) {
    Diagnostics diagnostics;
    CHECK(simulate(t.program, spec, diagnostics).status == RunStatus::refused);
    return text_of_check(diagnostics);
  };
  SECTION("in place") {
    t.program.contract.in_place = InPlace::no;
    CHECK(refusal({.bytes = 64, .in_place = true}) == "error: the plan is not right in place\n");
    t.program.contract.in_place = InPlace::yes;
    CHECK(refusal({.bytes = 64, .in_place = false}) == "error: the plan is right in place only\n");
  }
  SECTION("no contract") {
    t.program.contract.kind = CollectiveKind::none;
    CHECK(refusal({.bytes = 64}) == "error: the plan does not say which collective it is\n");
  }
  SECTION("another contract") {
    t.program.contract.ranks = 3;
    CHECK(refusal({.bytes = 64}) == "error: the contract is about 3 ranks, the program has 2\n");
  }
  SECTION("ops without a place") {
    t.program.split = false;
    CHECK(refusal({.bytes = 64}) ==
          "error: the program's ops are not yet placed in thread blocks\n");
  }
}

TEST_CASE("a message is cut down to whole elements") {
  const TestProgram t = one_shot(2, 2, PacketFormat::LL16);
  Diagnostics diagnostics;
  const RunResult result = simulate(t.program, {.bytes = 31, .dtype = Dtype::f64}, diagnostics);
  CHECK(result.status == RunStatus::right);
  CHECK(result.bytes == 24);
  CHECK(result.count == 3);
}

}  // namespace
}  // namespace mscclc
