// Calls: arguments, reductions made at run time; by a fake NCCL and by plans.
#include <algorithm>
#include <atomic>
#include <numeric>

#include "runtime/doors/nccl/abi/types.h"
#include "tests/nccl/forwarded_calls.h"
#include "tests/nccl/test_ranks.h"

namespace mscclc::nccl::testing {
namespace {

constexpr int kRanks = 3;
constexpr size_t kCount = 5;

/// Inputs of all ranks: rank r's element i is 10 r + i + 1.
std::vector<std::vector<int>> inputs(size_t rows) {
  std::vector<std::vector<int>> made(kRanks, std::vector<int>(rows * kCount));
  for (int rank = 0; rank < kRanks; ++rank) {
    std::iota(made[rank].begin(), made[rank].end(), 10 * rank + 1);
  }
  return made;
}
std::vector<std::vector<int>> outputs(size_t rows) {
  return std::vector<std::vector<int>>(kRanks, std::vector<int>(rows * kCount, -1));
}

/// Counts how often plans are asked.
class AskedCalls final : public ForwardedCalls {
 public:
  using ForwardedCalls::ForwardedCalls;
  std::unique_ptr<ServedCall> serve(const CollectiveCall& call, StreamHandle stream, bool capturing,
                                    std::string* what) override {
    ++asked;
    return ForwardedCalls::serve(call, stream, capturing, what);
  }
  static inline std::atomic<int> asked{0};
};

/// Every collective on three ranks, against its definition.
void check_collectives(Ranks& ranks) {
  const auto one = inputs(1), rows = inputs(kRanks);
  auto whole = outputs(1), all = outputs(kRanks);
  const auto sum = [&](const auto& from, size_t i) { return from[0][i] + from[1][i] + from[2][i]; };

  REQUIRE(ranks.together([&](int r, ncclComm_t comm) {
    return ncclAllReduce(one[r].data(), whole[r].data(), kCount, kInt32, kSum, comm, nullptr);
  }) == ncclSuccess);
  for (int r = 0; r < kRanks; ++r) {
    for (size_t i = 0; i < kCount; ++i) CHECK(whole[r][i] == sum(one, i));
  }

  REQUIRE(ranks.together([&](int r, ncclComm_t comm) {
    return ncclBroadcast(r == 1 ? one[r].data() : nullptr, whole[r].data(), kCount, kInt32, 1, comm,
                         nullptr);
  }) == ncclSuccess);
  for (int r = 0; r < kRanks; ++r) CHECK(whole[r] == one[1]);

  auto in_place = one;
  REQUIRE(ranks.together([&](int r, ncclComm_t comm) {
    return ncclBcast(in_place[r].data(), kCount, kInt32, 2, comm, nullptr);
  }) == ncclSuccess);
  for (int r = 0; r < kRanks; ++r) CHECK(in_place[r] == one[2]);

  whole = outputs(1);
  REQUIRE(ranks.together([&](int r, ncclComm_t comm) {
    return ncclReduce(one[r].data(), r == 2 ? whole[r].data() : nullptr, kCount, kInt32, kSum, 2,
                      comm, nullptr);
  }) == ncclSuccess);
  for (size_t i = 0; i < kCount; ++i) CHECK(whole[2][i] == sum(one, i));

  REQUIRE(ranks.together([&](int r, ncclComm_t comm) {
    return ncclAllGather(one[r].data(), all[r].data(), kCount, kInt32, comm, nullptr);
  }) == ncclSuccess);
  for (int r = 0; r < kRanks; ++r) {
    for (size_t i = 0; i < kRanks * kCount; ++i) CHECK(all[r][i] == one[i / kCount][i % kCount]);
  }

  REQUIRE(ranks.together([&](int r, ncclComm_t comm) {
    return ncclReduceScatter(rows[r].data(), whole[r].data(), kCount, kInt32, kSum, comm, nullptr);
  }) == ncclSuccess);
  for (size_t r = 0; r < kRanks; ++r) {
    for (size_t i = 0; i < kCount; ++i) CHECK(whole[r][i] == sum(rows, r * kCount + i));
  }

  REQUIRE(ranks.together([&](int r, ncclComm_t comm) {
    return ncclAlltoAll(rows[r].data(), all[r].data(), kCount, kInt32, comm, nullptr);
  }) == ncclSuccess);
  for (size_t r = 0; r < kRanks; ++r) {
    for (size_t i = 0; i < kRanks * kCount; ++i) {
      CHECK(all[r][i] == rows[i / kCount][r * kCount + i % kCount]);
    }
  }

  all = outputs(kRanks);
  REQUIRE(ranks.together([&](int r, ncclComm_t comm) {
    return ncclGather(one[r].data(), r == 0 ? all[r].data() : nullptr, kCount, kInt32, 0, comm,
                      nullptr);
  }) == ncclSuccess);
  for (size_t i = 0; i < kRanks * kCount; ++i) CHECK(all[0][i] == one[i / kCount][i % kCount]);

  REQUIRE(ranks.together([&](int r, ncclComm_t comm) {
    return ncclScatter(r == 1 ? rows[r].data() : nullptr, whole[r].data(), kCount, kInt32, 1, comm,
                       nullptr);
  }) == ncclSuccess);
  for (size_t r = 0; r < kRanks; ++r) {
    for (size_t i = 0; i < kCount; ++i) CHECK(whole[r][i] == rows[1][r * kCount + i]);
  }
}

TEST_CASE("plans are asked once for each call, whichever library then serves it") {
  const ServedBy served(kFakeNccl, true);
  serve_by<AskedCalls>();
  Ranks ranks(kRanks);
  std::vector<int> values(kRanks, 1);
  const auto all_reduce = [&](int r, ncclComm_t comm) {
    return ncclAllReduce(&values[r], &values[r], 1, kInt32, kSum, comm, nullptr);
  };
  for (int call = 1; call <= 3; ++call) {  // the first one loads the plan
    AskedCalls::asked = 0;
    REQUIRE(ranks.together(all_reduce) == ncclSuccess);
    CHECK(AskedCalls::asked == kRanks);
  }
  CHECK(values == std::vector<int>(kRanks, 27));
}

TEST_CASE("every collective goes to the fallback [case-37] [case-45] [case-58]") {
  const ServedBy served(kFakeNccl, false);
  Ranks ranks(kRanks);
  check_collectives(ranks);
}

TEST_CASE("every collective by plans, without a fallback [case-7] [case-37] [case-45] [case-58]") {
  const ServedBy served(nullptr, true);
  Ranks ranks(kRanks);
  check_collectives(ranks);
  CHECK(ranks.together([&](int, ncclComm_t comm) {
    int value = 2;
    ncclRedOp_t op = kSum;
    CHECK(ncclRedOpCreatePreMulSum(&op, &value, kInt32, kNcclScalarHostImmediate, comm) ==
          ncclSuccess);
    return ncclAllReduce(&value, &value, 1, kInt32, op, comm, nullptr);
  }) == ncclInvalidUsage);
  CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("a test has no NCCL"));
  int version = 0;
  CHECK(ncclGetVersion(&version) == ncclSuccess);
  CHECK(version == 22809);
}

TEST_CASE("one thread drives all ranks while their calls are compared [case-58]") {
  ::setenv("MSCCLC_CHECK_CALLS", "1", 1);
  {
    const ServedBy served(nullptr, true);
    Ranks ranks(kRanks);
    check_collectives(ranks);
  }
  ::unsetenv("MSCCLC_CHECK_CALLS");
}

/// What ranks 0 and 1 do, each on a thread of its own, while calls are compared.
std::vector<ncclResult_t> compared(Ranks& ranks,
                                   const std::function<ncclResult_t(int rank, ncclComm_t)>& fn) {
  on_threads(2, [&](int r) { ranks.results[r] = fn(r, ranks.comms[r]); });
  return ranks.results;
}

TEST_CASE("ranks whose calls differ get an error that says so, and go on [case-88]") {
  const bool plans = GENERATE(false, true);
  ::setenv("MSCCLC_CHECK_CALLS", "1", 1);
  {
    const ServedBy served(kFakeNccl, plans);
    Ranks ranks(2);
    const std::vector<ncclResult_t> refused(2, ncclInvalidUsage), fine(2, ncclSuccess);
    int in[2][4] = {{1, 1, 1, 1}, {2, 2, 2, 2}}, out[2][4] = {};
    const auto differ = [&](const char* text, const auto& fn) {
      CHECK(compared(ranks, fn) == refused);
      CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains(text));
    };
    differ("rank 1 makes AllReduce count 4 datatype 2 op 0 root 0, rank 0 makes AllReduce count 3 ",
           [&](int r, ncclComm_t comm) {
             return ncclAllReduce(in[r], out[r], 3 + r, kInt32, kSum, comm, nullptr);
           });
    differ("rank 1 makes AllReduce count 0 datatype 2 op 0 root 0, rank 0 makes AllReduce count 4 ",
           [&](int r, ncclComm_t comm) {
             return ncclAllReduce(in[r], out[r], r == 0 ? 4 : 0, kInt32, kSum, comm, nullptr);
           });
    differ("datatype 7", [&](int r, ncclComm_t comm) {
      return ncclAllReduce(in[r], out[r], 4, r == 0 ? kInt32 : kFloat, kSum, comm, nullptr);
    });
    differ("op 2", [&](int r, ncclComm_t comm) {
      return ncclAllReduce(in[r], out[r], 4, kInt32, r == 0 ? kSum : 2, comm, nullptr);
    });
    differ("root 1", [&](int r, ncclComm_t comm) {
      return ncclBroadcast(in[r], out[r], 4, kInt32, r, comm, nullptr);
    });
    // One rank's call is for a plan, the other's for NCCL.
    differ("of PreMulSum", [&](int r, ncclComm_t comm) {
      ncclRedOp_t op = kSum;
      int two = 2;
      if (r == 1) {
        (void)ncclRedOpCreatePreMulSum(&op, &two, kInt32, kNcclScalarHostImmediate, comm);
      }
      return ncclAllReduce(in[r], out[r], 4, kInt32, op, comm, nullptr);
    });
    differ("rank 1 makes no call, rank 0 makes AllGather", [&](int r, ncclComm_t comm) {
      ncclGroupStart();
      (void)ncclAllReduce(in[r], out[r], 4, kInt32, kSum, comm, nullptr);
      if (r == 0) (void)ncclAllGather(in[r], out[r], 2, kInt32, comm, nullptr);
      return ncclGroupEnd();
    });
    CHECK(out[0][0] == 0);
    CHECK(compared(ranks, [&](int r, ncclComm_t comm) {
            return ncclAllReduce(in[r], out[r], 4, kInt32, kSum, comm, nullptr);
          }) == fine);
    CHECK(out[1][3] == 3);
    CHECK(compared(ranks, [&](int, ncclComm_t comm) {
            return ncclAllReduce(nullptr, nullptr, 0, kInt32, kSum, comm, nullptr);
          }) == fine);
  }
  ::unsetenv("MSCCLC_CHECK_CALLS");
}

TEST_CASE("ranks on threads of their own, by plans [case-14]") {
  const ServedBy served(nullptr, true);
  Ranks ranks(kRanks);
  const auto one = inputs(1);
  auto out = outputs(1);
  on_threads(kRanks, [&](int r) {
    for (int round = 0; round < 20; ++round) {
      ranks.results[r] = ncclAllReduce(one[r].data(), out[r].data(), kCount, kInt32, kSum,
                                       ranks.comms[r], nullptr);
    }
  });
  CHECK(ranks.results == std::vector<ncclResult_t>(kRanks, ncclSuccess));
  for (int r = 0; r < kRanks; ++r) CHECK(out[r] == out[0]);
  CHECK(out[0][0] == 1 + 11 + 21);
}

/// What an operation makes of the values of all ranks, in doubles.
double expected(int op, const std::vector<double>& values) {
  double result = values[0];
  for (size_t i = 1; i < values.size(); ++i) {
    const double value = values[i];
    if (op == 1)
      result *= value;
    else if (op == 2)
      result = std::max(result, value);
    else if (op == 3)
      result = std::min(result, value);
    else
      result += value;
  }
  return op == 4 ? result / static_cast<double>(values.size()) : result;
}

template <typename T>
void check_reductions(Ranks& ranks, int type) {
  for (int op = 0; op < kNcclNumOps; ++op) {
    std::vector<std::vector<T>> in(kRanks), out(kRanks, std::vector<T>(1));
    std::vector<double> values;
    for (int r = 0; r < kRanks; ++r) {
      values.push_back(3.0 * (r + 1));  // the average is whole
      in[r] = {static_cast<T>(values.back())};
    }
    REQUIRE(ranks.together([&](int r, ncclComm_t comm) {
      return ncclAllReduce(in[r].data(), out[r].data(), 1, type, op, comm, nullptr);
    }) == ncclSuccess);
    INFO("type " << type << ", op " << op);
    for (int r = 0; r < kRanks; ++r) {
      CHECK(out[r] == out[0]);
      CHECK(static_cast<double>(out[r][0]) == Approx(expected(op, values)));
    }
  }
}

TEST_CASE("every reduction, by fallback and by plans [case-38] [case-49]") {
  const bool plans = GENERATE(false, true);
  const ServedBy served(plans ? nullptr : kFakeNccl, plans);
  Ranks ranks(kRanks);
  check_reductions<uint8_t>(ranks, 1);
  check_reductions<int32_t>(ranks, kInt32);
  check_reductions<uint32_t>(ranks, 3);
  check_reductions<int64_t>(ranks, 4);
  check_reductions<uint64_t>(ranks, 5);
  check_reductions<float>(ranks, kFloat);
  check_reductions<double>(ranks, kDouble);
}

TEST_CASE("every type is moved, at any address, in place [case-37] [case-47]") {
  const bool plans = GENERATE(false, true);
  const ServedBy served(plans ? nullptr : kFakeNccl, plans);
  Ranks ranks(2);
  for (int type = 0; type < kTypes; ++type) {
    const size_t bytes = info(*dtype_of(type)).bytes;
    for (size_t offset : {size_t{0}, bytes}) {  // one element off is NCCL's worst case
      std::vector<std::vector<char>> all(2, std::vector<char>(offset + 2 * 3 * bytes, 0));
      for (size_t r = 0; r < 2; ++r) {
        std::fill_n(all[r].begin() + offset + r * 3 * bytes, 3 * bytes, static_cast<char>(r + 1));
      }
      REQUIRE(ranks.together([&](int r, ncclComm_t comm) {
        char* const out = all[r].data() + offset;
        return ncclAllGather(out + r * 3 * bytes, out, 3, type, comm, nullptr);
      }) == ncclSuccess);
      CHECK(all[0] == all[1]);
      CHECK(all[0].back() == 2);
      CHECK(all[0][offset] == 1);
    }
  }
}

TEST_CASE("pre-multiplied sums [case-39] [case-40] [case-41]") {
  const ServedBy served(kFakeNccl, true);
  Ranks ranks(2);
  double device_scalar[2] = {2, 3}, out[2] = {};
  const double in[2] = {10, 100};
  std::vector<ncclRedOp_t> ops(2);
  REQUIRE(ranks.together([&](int r, ncclComm_t comm) {
    double scalar = r + 2;
    CHECK(ncclRedOpCreatePreMulSum(&ops[r], &scalar, kDouble, kNcclScalarHostImmediate, comm) ==
          ncclSuccess);
    scalar = -1;  // it was copied
    (void)ncclAllReduce(&in[r], &out[r], 1, kDouble, ops[r], comm, nullptr);
    return ncclRedOpDestroy(ops[r], comm);
  }) == ncclSuccess);
  CHECK(out[0] == 320);
  CHECK(out[1] == 320);
  for (int r = 0; r < 2; ++r) {
    REQUIRE(ncclRedOpCreatePreMulSum(&ops[r], &device_scalar[r], kDouble, kNcclScalarDevice,
                                     ranks.comms[r]) == ncclSuccess);
  }
  for (const double second : {3.0, 7.0}) {
    device_scalar[1] = second;
    REQUIRE(ranks.together([&](int r, ncclComm_t comm) {
      return ncclAllReduce(&in[r], &out[r], 1, kDouble, ops[r], comm, nullptr);
    }) == ncclSuccess);
    CHECK(out[0] == 20 + 100 * second);
  }
  for (int r = 0; r < 2; ++r) CHECK(ncclRedOpDestroy(ops[r], ranks.comms[r]) == ncclSuccess);
}

TEST_CASE("reductions belong to their communicator and type [case-42]") {
  const ServedBy served(kFakeNccl, false);
  Ranks a(1), b(1);
  ncclRedOp_t op = 0;
  float scalar = 2, value = 1;
  REQUIRE(ncclRedOpCreatePreMulSum(&op, &scalar, kFloat, kNcclScalarHostImmediate, a.comms[0]) ==
          ncclSuccess);
  CHECK(ncclAllReduce(&value, &value, 1, kFloat, op, b.comms[0], nullptr) == ncclInvalidArgument);
  CHECK(ncclAllReduce(&value, &value, 1, kInt32, op, a.comms[0], nullptr) == ncclInvalidArgument);
  CHECK(ncclRedOpDestroy(op, b.comms[0]) == ncclInvalidArgument);
  CHECK(ncclRedOpDestroy(kSum, a.comms[0]) == ncclInvalidArgument);
  CHECK(ncclRedOpDestroy(op, a.comms[0]) == ncclSuccess);
  CHECK(ncclRedOpDestroy(op, a.comms[0]) == ncclInvalidArgument);
  CHECK(ncclRedOpCreatePreMulSum(&op, &scalar, 12, kNcclScalarHostImmediate, a.comms[0]) ==
        ncclInvalidArgument);
  CHECK(ncclRedOpCreatePreMulSum(nullptr, &scalar, kFloat, kNcclScalarDevice, a.comms[0]) ==
        ncclInvalidArgument);
}

TEST_CASE("calls without elements do nothing [case-43]") {
  const ServedBy served(nullptr, false);  // there is nothing that could do something
  Ranks ranks(2);                         // and no rank to wait for
  ncclComm_t c = ranks.comms[0];
  CHECK(ncclAllReduce(nullptr, nullptr, 0, kInt32, kSum, c, nullptr) == ncclSuccess);
  CHECK(ncclBroadcast(nullptr, nullptr, 0, kInt32, 0, c, nullptr) == ncclSuccess);
  CHECK(ncclBcast(nullptr, 0, kInt32, 0, c, nullptr) == ncclSuccess);
  CHECK(ncclReduce(nullptr, nullptr, 0, kInt32, kSum, 0, c, nullptr) == ncclSuccess);
  CHECK(ncclAllGather(nullptr, nullptr, 0, kInt32, c, nullptr) == ncclSuccess);
  CHECK(ncclReduceScatter(nullptr, nullptr, 0, kInt32, kSum, c, nullptr) == ncclSuccess);
  CHECK(ncclAlltoAll(nullptr, nullptr, 0, kInt32, c, nullptr) == ncclSuccess);
  CHECK(ncclGather(nullptr, nullptr, 0, kInt32, 0, c, nullptr) == ncclSuccess);
  CHECK(ncclScatter(nullptr, nullptr, 0, kInt32, 0, c, nullptr) == ncclSuccess);
  CHECK(ncclAllReduce(nullptr, nullptr, 0, 99, kSum, c, nullptr) == ncclInvalidArgument);
}

TEST_CASE("sends of nothing, to oneself, with holes [case-44] [case-65]") {
  const bool plans = GENERATE(false, true);
  const ServedBy served(plans ? nullptr : kFakeNccl, plans);
  Ranks ranks(kRanks);
  auto out = outputs(kRanks);
  const auto in = inputs(kRanks);
  REQUIRE(ranks.together([&](int r, ncclComm_t comm) {
    for (int peer = 0; peer < kRanks; ++peer) {
      // A row's length depends on both ends, and some have none.
      const size_t sent = static_cast<size_t>((r + peer) % kRanks);
      (void)ncclSend(in[r].data() + peer * kCount, sent, kInt32, peer, comm, nullptr);
      (void)ncclRecv(out[r].data() + peer * kCount, sent, kInt32, peer, comm, nullptr);
    }
    return ncclSuccess;
  }) == ncclSuccess);
  for (size_t r = 0; r < kRanks; ++r) {
    for (size_t peer = 0; peer < kRanks; ++peer) {
      for (size_t i = 0; i < kCount; ++i) {
        const bool came = i < (r + peer) % kRanks;
        CHECK(out[r][peer * kCount + i] == (came ? in[peer][r * kCount + i] : -1));
      }
    }
  }
}

TEST_CASE("arguments out of range have no effect [case-46]") {
  const ServedBy served(kFakeNccl, false);
  Ranks ranks(2);
  ncclComm_t c = ranks.comms[0];
  int value = 1;
  CHECK(ncclBroadcast(&value, &value, 1, kInt32, 2, c, nullptr) == ncclInvalidArgument);
  CHECK(ncclBroadcast(&value, &value, 1, kInt32, -1, c, nullptr) == ncclInvalidArgument);
  CHECK(ncclSend(&value, 1, kInt32, 2, c, nullptr) == ncclInvalidArgument);
  CHECK(ncclRecv(&value, 1, kInt32, -1, c, nullptr) == ncclInvalidArgument);
  CHECK(ncclAllReduce(&value, &value, 1, 12, kSum, c, nullptr) == ncclInvalidArgument);
  CHECK(ncclAllReduce(&value, &value, 1, -1, kSum, c, nullptr) == ncclInvalidArgument);
  CHECK(ncclAllReduce(&value, &value, 1, kInt32, 5, c, nullptr) == ncclInvalidArgument);
  CHECK(ncclAllReduce(&value, &value, 1, kInt32, -1, c, nullptr) == ncclInvalidArgument);
  CHECK(ncclAllReduce(&value, &value, 1, kInt32, kSum, nullptr, nullptr) == ncclInvalidArgument);
  CHECK(ncclAllReduce(&value, &value, 1, kInt32, kSum, reinterpret_cast<ncclComm_t>(&value),
                      nullptr) == ncclInvalidArgument);
  CHECK(value == 1);
  int values[2] = {1, 2};
  CHECK(ranks.together([&](int r, ncclComm_t comm) {
    return ncclAllReduce(&values[r], &values[r], 1, kInt32, kSum, comm, nullptr);
  }) == ncclSuccess);
  CHECK(values[0] == 3);
}

TEST_CASE("what is not a stream of the host is refused there") {
  const ServedBy served(kFakeNccl, true);
  Ranks ranks(2);
  int value = 1;
  const ncclComm_t c = ranks.comms[0];
  for (cudaStream_t stream : {reinterpret_cast<cudaStream_t>(&value),
                              reinterpret_cast<cudaStream_t>(uintptr_t{0xdead0})}) {
    CHECK(ncclAllReduce(&value, &value, 1, kInt32, kSum, c, stream) == ncclInvalidArgument);
    CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("is not a stream of the host device"));
    CHECK(ncclBroadcast(&value, &value, 0, kInt32, 0, c, stream) == ncclInvalidArgument);
    CHECK(ncclSend(&value, 1, kInt32, 1, c, stream) == ncclInvalidArgument);
    CHECK(ncclSignal(1, 0, 0, 0, c, stream) == ncclInvalidArgument);
  }
  Diagnostics diagnostics;
  const auto gone = static_cast<cudaStream_t>(find_comm(c)->device->create_stream(diagnostics));
  REQUIRE(gone != nullptr);
  find_comm(c)->device->destroy_stream(gone);
  CHECK(ncclAllReduce(&value, &value, 1, kInt32, kSum, c, gone) == ncclInvalidArgument);
  CHECK(value == 1);
}

TEST_CASE("more elements than any memory holds are refused [case-46]") {
  const ServedBy served(nullptr, true);
  for (const int size : {1, 2}) {
    Ranks ranks(size);
    std::vector<int> values(4, 1);
    for (const size_t count :
         {size_t{1} << 43, size_t{1} << 62, (size_t{1} << 62) + 1, ~size_t{0}}) {
      const ncclComm_t comm = ranks.comms[0];
      int* const at = values.data();
      CHECK(ncclAllReduce(at, at, count, kInt32, kSum, comm, nullptr) == ncclInvalidArgument);
      CHECK(ncclAllGather(at, at, count, kInt32, comm, nullptr) == ncclInvalidArgument);
      CHECK(ncclAlltoAll(at, at, count, kInt32, comm, nullptr) == ncclInvalidArgument);
      CHECK(ncclSend(at, count, kInt32, 0, comm, nullptr) == ncclInvalidArgument);
    }
    CHECK(ranks.together([&](int r, ncclComm_t comm) {
      return ncclAllReduce(&values[r], &values[r], 1, kInt32, kSum, comm, nullptr);
    }) == ncclSuccess);
    CHECK(values[0] == size);
  }
}

TEST_CASE("buffers that a plan cannot take are wrong arguments") {
  const ServedBy served(nullptr, true);
  Ranks ranks(2);
  std::vector<int> values(8, 1);
  CHECK(ranks.together([&](int, ncclComm_t comm) {
    return ncclAllReduce(nullptr, values.data(), 4, kInt32, kSum, comm, nullptr);
  }) == ncclInvalidArgument);
  CHECK(ranks.together([&](int, ncclComm_t comm) {
    return ncclAllReduce(values.data(), values.data() + 1, 4, kInt32, kSum, comm, nullptr);
  }) == ncclInvalidArgument);
}

TEST_CASE("one rank takes no buffers that overlap either") {
  const ServedBy served(nullptr, false);
  Ranks ranks(1);
  std::vector<int> values(8, 1);
  const auto sum = [&](int* to) {
    return ncclAllReduce(values.data(), to, 4, kInt32, kSum, ranks.comms[0], nullptr);
  };
  CHECK(sum(&values[1]) == ncclInvalidArgument);
  CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("the buffers overlap"));
  CHECK(sum(&values[4]) == ncclSuccess);
  CHECK(sum(&values[0]) == ncclSuccess);
}

TEST_CASE("one rank, every collective [case-52]") {
  const ServedBy served(nullptr, false);
  Ranks ranks(1);
  ncclComm_t c = ranks.comms[0];
  const int in = 7;
  const auto check = [&](auto call) {
    int out = 0;
    CHECK(call(&in, &out) == ncclSuccess);
    CHECK(out == 7);
  };
  check([&](auto s, auto r) { return ncclAllReduce(s, r, 1, kInt32, 4, c, nullptr); });
  check([&](auto s, auto r) { return ncclBroadcast(s, r, 1, kInt32, 0, c, nullptr); });
  check([&](auto s, auto r) { return ncclReduce(s, r, 1, kInt32, kSum, 0, c, nullptr); });
  check([&](auto s, auto r) { return ncclAllGather(s, r, 1, kInt32, c, nullptr); });
  check([&](auto s, auto r) { return ncclReduceScatter(s, r, 1, kInt32, kSum, c, nullptr); });
  check([&](auto s, auto r) { return ncclAlltoAll(s, r, 1, kInt32, c, nullptr); });
  check([&](auto s, auto r) { return ncclGather(s, r, 1, kInt32, 0, c, nullptr); });
  check([&](auto s, auto r) { return ncclScatter(s, r, 1, kInt32, 0, c, nullptr); });
}

}  // namespace
}  // namespace mscclc::nccl::testing
