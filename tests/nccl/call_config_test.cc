// The configuration of one call, and what a process asks of all: encryption.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/helpers/runtime/forwarding_device.h"
#include "tests/nccl/forwarded_calls.h"
#include "tests/nccl/test_ranks.h"

namespace mscclc::nccl::testing {
namespace {

constexpr const char* kLatest = "tests/fakes/nccl/23203/libnccl.so.2";

TEST_CASE("a call's own configuration [case-100]") {
  const ServedBy served("tests/fakes/nccl/23007/libnccl.so.2", false);
  Ranks ranks(1);
  CallersCallConfig config;
  const int in = 5;
  int out = 0;
  const auto call = [&] {
    return ncclAllReduceConfig(&in, &out, 1, kInt32, kSum, ranks.comms[0], nullptr, config.get());
  };
  CHECK(call() == ncclSuccess);
  CHECK(out == 5);
  config.size = 64, config.version = 23100;  // as of 2.31: what follows is not its
  config.event = &out;
  CHECK(call() == ncclSuccess);
  config.size = 63;
  CHECK(call() == ncclInvalidArgument);
  config.size = 72, config.magic = 0;
  CHECK(call() == ncclInvalidArgument);
  CHECK(ncclAllReduceConfig(&in, &out, 1, kInt32, kSum, ranks.comms[0], nullptr, nullptr) ==
        ncclSuccess);
}

/// The bounds that plans are asked to keep to, of calls in turn.
class BoundsOfCalls final : public ForwardedCalls {
 public:
  using ForwardedCalls::ForwardedCalls;
  std::unique_ptr<ServedCall> serve(const CollectiveCall& call, StreamHandle stream, bool capturing,
                                    std::string* what) override {
    bounds.push_back(call.most_blocks);
    return ForwardedCalls::serve(call, stream, capturing, what);
  }
  static inline std::vector<uint32_t> bounds;
};

TEST_CASE("a call's maxCTAs bounds its plan, and nothing that NCCL would ignore does [case-100]") {
  const ServedBy served(nullptr, true);
  serve_by<BoundsOfCalls>();
  Ranks ranks(2);
  BoundsOfCalls::bounds.clear();
  for (const int most : std::vector<int>{kNcclUndefinedInt, 4, 0, -3}) {
    CallersCallConfig config;
    config.max_ctas = most;
    int values[2] = {1, 2};
    ncclGroupStart();
    for (int r = 0; r < 2; ++r) {
      CHECK(ncclAllReduceConfig(&values[r], &values[r], 1, kInt32, kSum, ranks.comms[r], nullptr,
                                config.get()) == ncclSuccess);
    }
    CHECK(ncclGroupEnd() == ncclSuccess);
    CHECK(values[0] == 3);
  }
  CHECK(BoundsOfCalls::bounds == std::vector<uint32_t>{0, 0, 4, 4, 0, 0, 0, 0});
}

TEST_CASE("a call's CTA policy takes the place of its communicator's [case-102]") {
  const ServedBy served(kLatest, true);
  const auto left_to_nccl = [](int of_communicator, int of_call) {
    const ncclUniqueId id = new_id();
    ncclComm_t comms[2];
    ncclGroupStart();
    for (int r = 0; r < 2; ++r) {
      CallersConfig configured(72, 22700);
      configured.at(60) = of_communicator;
      (void)ncclCommInitRankConfig(&comms[r], 2, id, r, configured.get());
    }
    REQUIRE(ncclGroupEnd() == ncclSuccess);
    std::vector<int> memory[2] = {std::vector<int>(300), std::vector<int>(300)};
    ncclWindow_t windows[2];
    ncclGroupStart();
    for (int r = 0; r < 2; ++r) {
      (void)ncclCommWindowRegister(comms[r], memory[r].data(), 1200, &windows[r],
                                   kNcclWinCollSymmetric);
    }
    REQUIRE(ncclGroupEnd() == ncclSuccess);
    CallersCallConfig config;
    config.policy = of_call;
    const long before = calls_of_fake("AllGatherConfig", kLatest);
    ncclGroupStart();
    for (int r = 0; r < 2; ++r) {
      memory[r][0] = r + 1;
      CHECK(ncclAllGatherConfig(&memory[r][0], &memory[r][100], 1, kInt32, comms[r], nullptr,
                                config.get()) == ncclSuccess);
    }
    REQUIRE(ncclGroupEnd() == ncclSuccess);
    for (int r = 0; r < 2; ++r) {
      CHECK(ncclCommWindowDeregister(comms[r], windows[r]) == ncclSuccess);
      CHECK(ncclCommDestroy(comms[r]) == ncclSuccess);
    }
    const long left = calls_of_fake("AllGatherConfig", kLatest) - before;
    // The fake does not make calls with configurations.
    if (left == 0) CHECK((memory[1][100] == 1 && memory[0][101] == 2));
    return left;
  };
  CHECK(left_to_nccl(2, kNcclUndefinedInt) == 2);
  CHECK(left_to_nccl(2, 0) == 0);
  CHECK(left_to_nccl(0, 3) == 2);
  CHECK(left_to_nccl(1, 7) == 0);  // no policy: NCCL ignores it
}

TEST_CASE("an event that no library records is an error, never forgotten [case-100]") {
  CallersCallConfig config;
  int in = 5, out = 0;
  config.event = &in;
  const auto call = [&](const char* library, bool plans) {
    const ServedBy served(library, plans);
    Ranks ranks(2);
    return ranks.together([&](int, ncclComm_t comm) {
      return ncclBroadcastConfig(&in, &out, 1, kInt32, 0, comm, nullptr, config.get());
    });
  };
  CHECK(call("tests/fakes/nccl/23007/libnccl.so.2", false) == ncclInvalidUsage);
  CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("2.30.7 records no launchCompletionEvent"));
  CHECK(call(kLatest, false) == ncclSuccess);
  CHECK(call(nullptr, true) == ncclInvalidUsage);  // the host has no events
  CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("ranks run on processors"));
}

/// What was put on streams, in turn: "call 0x1", "event 0x2 0x1". The stream is last.
std::vector<std::string>& put_on_streams() {
  static std::vector<std::string> all;
  return all;
}

/// A call that says when it is put on its stream.
class OrderedCall final : public ForwardedCall {
 public:
  OrderedCall(std::unique_ptr<ServedCall> call, StreamHandle stream)
      : ForwardedCall(std::move(call)), stream_(stream) {}
  bool launch(Diagnostics& diagnostics) override {
    put_on_streams().push_back(fmt::format("call {}", stream_));
    return ForwardedCall::launch(diagnostics);
  }

 private:
  const StreamHandle stream_;
};

class OrderedCalls final : public ForwardedCalls {
 public:
  using ForwardedCalls::ForwardedCalls;
  std::unique_ptr<ServedCall> serve(const CollectiveCall& call, StreamHandle stream, bool capturing,
                                    std::string* what) override {
    auto served = ForwardedCalls::serve(call, stream, capturing, what);
    return served == nullptr ? nullptr : std::make_unique<OrderedCall>(std::move(served), stream);
  }
};

/// A device with events, or one that fails to record them.
class EventDevice final : public mscclc::testing::ForwardingDevice {
 public:
  EventDevice(std::shared_ptr<Device> device, bool works)
      : ForwardingDevice(std::move(device)), works_(works) {}
  bool record_event(void* event, StreamHandle stream, Diagnostics& diagnostics) override {
    put_on_streams().push_back(fmt::format("event {} {}", event, stream));
    if (!works_) diagnostics.error("cuda", {}, "the event is of another GPU");
    return works_;
  }

 private:
  const bool works_;
};

/// Ranks of a thread, each with a stream and an event, whose device records them or does not.
struct RanksWithEvents {
  RanksWithEvents(int size, bool works) : ranks(size) {
    for (int r = 0; r < size; ++r) {
      const CommPointer comm = find_comm(ranks.comms[r]);
      const std::lock_guard lock(comm->mutex);
      Diagnostics diagnostics;
      streams.push_back(comm->device->create_stream(diagnostics));
      comm->device = std::make_shared<EventDevice>(comm->device, works);
      comm->on_host = false;
    }
  }
  ~RanksWithEvents() {
    for (int r = 0; r < ranks.size(); ++r) {
      find_comm(ranks.comms[r])->device->destroy_stream(streams[r]);
    }
  }
  /// An allreduce of all; `events`: which of them have one.
  ncclResult_t all_reduce(const std::vector<bool>& events) {
    return ranks.together([&](int r, ncclComm_t comm) {
      CallersCallConfig config;
      config.event = events[r] ? &values[r] : nullptr;
      return ncclAllReduceConfig(&values[r], &values[r], 1, kInt32, kSum, comm,
                                 static_cast<cudaStream_t>(streams[r]), config.get());
    });
  }
  std::string call(int r) const { return fmt::format("call {}", streams[r]); }
  std::string event(int r) const {
    return fmt::format("event {} {}", static_cast<const void*>(&values[r]), streams[r]);
  }
  int values[2] = {1, 2};
  Ranks ranks;
  std::vector<StreamHandle> streams;
};

TEST_CASE("an event is recorded after its call, on the call's stream [case-100]") {
  const ServedBy served(nullptr, true);
  serve_by<OrderedCalls>();
  RanksWithEvents both(2, true);
  put_on_streams().clear();
  REQUIRE(both.all_reduce({true, true}) == ncclSuccess);
  using Noted = std::vector<std::string>;
  CHECK(put_on_streams() == Noted{both.call(0), both.event(0), both.call(1), both.event(1)});
  put_on_streams().clear();
  REQUIRE(both.all_reduce({false, true}) == ncclSuccess);
  CHECK(put_on_streams() == Noted{both.call(0), both.call(1), both.event(1)});
  put_on_streams().clear();
  REQUIRE(both.all_reduce({false, false}) == ncclSuccess);
  CHECK(put_on_streams() == Noted{both.call(0), both.call(1)});
}

TEST_CASE("an event that cannot be recorded is the call's error [case-100]") {
  const ServedBy served(nullptr, true);
  serve_by<OrderedCalls>();
  RanksWithEvents one(1, false);
  put_on_streams().clear();
  CHECK(one.all_reduce({true}) == ncclSystemError);
  CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("the event is of another GPU"));
  CHECK(put_on_streams() == std::vector<std::string>{one.event(0)});
}

TEST_CASE("algorithms that a call names are read by the call, not at the group's end [case-100]") {
  const ServedBy served(kLatest, true);
  Ranks ranks(2);
  const long before = calls_of_fake("AllReduceConfig", kLatest);
  int values[2] = {1, 2};
  CHECK(ranks.together([&](int r, ncclComm_t comm) {
    std::string algorithms = "Ring";
    CallersCallConfig config;
    config.algorithms = algorithms.data();
    const ncclResult_t result =
        ncclAllReduceConfig(&values[r], &values[r], 1, kInt32, kSum, comm, nullptr, config.get());
    algorithms = "";
    return result;
  }) == ncclSuccess);
  CHECK(calls_of_fake("AllReduceConfig", kLatest) == before + 2);
}

/// ncclConfigExt_t, with mscclc's own key of orders.
struct CallersOption {
  const CallersOption* next = nullptr;
  int vendor = 0x6d7363, number = 1;
  const char* text = "exact";
};

constexpr int kProduct = 1;

/// Sums that differ by their order: 1 if exact, 0 in the order of the ranks. `option`: that of each
/// rank's call.
ncclResult_t add_far_apart(Ranks& ranks, float (&value)[3],
                           const std::function<const CallersOption*(int rank)>& option,
                           int op = kSum) {
  value[0] = 1e8F, value[1] = 1, value[2] = -1e8F;
  return ranks.together([&](int r, ncclComm_t comm) {
    CallersCallConfig config;  // read by the call, not at the group's end
    config.ext = const_cast<CallersOption*>(option(r));
    const auto* const asked = config.ext == nullptr ? nullptr : config.get();
    return ncclAllReduceConfig(&value[r], &value[r], 1, kFloat, op, comm, nullptr, asked);
  });
}

TEST_CASE("a call's order of sums comes before its communicator's [case-104]") {
  const ServedBy served(nullptr, true);
  Ranks ranks(3);
  const CallersOption others{nullptr, 0x6d7364, 7, nullptr}, exact{&others},
      in_turn{nullptr, 0x6d7363, 1, "ranks"}, after{&in_turn, 0x6d7364, 1, "exact"};
  const auto sum_by = [&](const CallersOption* option) {
    float value[3];
    CHECK(add_far_apart(ranks, value, [&](int) { return option; }) == ncclSuccess);
    CHECK((value[0] == value[2] && value[1] == value[2]));
    return value[2];
  };
  CHECK(sum_by(&exact) == 1);
  CHECK(sum_by(&in_turn) == 0);
  for (ncclComm_t comm : ranks.comms) CHECK(mscclc_nccl_order(comm, "exact") == ncclSuccess);
  CHECK(sum_by(&after) == 0);
  CHECK(sum_by(&others) == 1);
  CHECK(sum_by(nullptr) == 1);
  // Each call of a group has its own, of every collective that adds up.
  const CallersOption* const both[2] = {&exact, &in_turn};
  float value[3] = {1e8F, 1, -1e8F}, spread[3][3] = {}, sums[2][3][2];
  for (int r = 0; r < 3; ++r) std::fill_n(spread[r], 3, value[r]);
  CHECK(ranks.together([&](int r, ncclComm_t comm) {
    ncclResult_t result = ncclSuccess;
    for (int i = 0; i < 2 && result == ncclSuccess; ++i) {
      CallersCallConfig config;
      config.ext = const_cast<CallersOption*>(both[i]);
      (void)ncclReduceScatterConfig(spread[r], &sums[i][r][0], 1, kFloat, kSum, comm, nullptr,
                                    config.get());
      result = ncclReduceConfig(&value[r], &sums[i][r][1], 1, kFloat, kSum, 2, comm, nullptr,
                                config.get());
    }
    return result;
  }) == ncclSuccess);
  for (int r = 0; r < 3; ++r) CHECK((sums[0][r][0] == 1 && sums[1][r][0] == 0));
  CHECK((sums[0][2][1] == 1 && sums[1][2][1] == 0));
}

TEST_CASE("a wrong order of a call is an error [case-104]") {
  const ServedBy served(kLatest, true);
  Ranks ranks(3);
  float value[3];
  const auto error_of = [&](const CallersOption& option) {
    CHECK(add_far_apart(ranks, value, [&](int) { return &option; }) == ncclInvalidArgument);
    CHECK((value[0] == 1e8F && value[2] == -1e8F));
    return std::string(ncclGetLastError(nullptr));
  };
  const CallersOption first, second{&first}, unknown{nullptr, 0x6d7363, 2, "exact"};
  CHECK_THAT(error_of({nullptr, 0x6d7363, 1, "sorted"}),
             Catch::Contains("ncclAllReduceConfig: there is no order 'sorted'; there are any, "));
  CHECK_THAT(error_of({nullptr, 0x6d7363, 1, nullptr}), Catch::Contains("there is no order ''"));
  CHECK_THAT(error_of(unknown), Catch::Contains("has an option that mscclc does not know"));
  CHECK_THAT(error_of(second), Catch::Contains("config's ext has two orders"));
  CallersOption loop{nullptr, 1};
  loop.next = &loop;
  CHECK_THAT(error_of(loop), Catch::Contains("is a list without an end"));
}

TEST_CASE("ranks whose calls ask for different orders get an error [case-104]") {
  for (const char* compare : {"0", "1"}) {
    INFO(compare);
    const Setting compared("MSCCLC_CHECK_CALLS", compare);
    const ServedBy served(kLatest, true);
    Ranks ranks(3);
    const CallersOption exact, in_turn{nullptr, 0x6d7363, 1, "ranks"};
    float value[3];
    CHECK(add_far_apart(ranks, value, [&](int r) { return r == 1 ? &exact : &in_turn; }) ==
          ncclInvalidUsage);
    CHECK_THAT(ncclGetLastError(nullptr),
               Catch::Contains("order ranks") && Catch::Contains("order exact"));
  }
}

TEST_CASE("a call's order that no plan keeps is not left to NCCL [case-104]") {
  const CallersOption exact, replicated{nullptr, 0x6d7363, 1, "replicated"};
  float value[3];
  {
    const ServedBy served(kLatest, true);
    Ranks ranks(3);
    const long before = calls_of_fake("AllReduceConfig", kLatest);
    CHECK(add_far_apart(
              ranks, value, [&](int) { return &exact; }, kProduct) == ncclInvalidUsage);
    CHECK_THAT(ncclGetLastError(nullptr),
               Catch::Contains("and NCCL does not keep to 'exact', which its configuration asks") &&
                   Catch::Contains("; the nearest plan is 'allreduce_1shot_ordered:R=3,"));
    CHECK(calls_of_fake("AllReduceConfig", kLatest) == before);
  }
  const Setting of_job("MSCCLC_ORDER", "exact"), all_to_nccl("NCCL_ALGO", "Ring");
  const ServedBy served(kLatest, true);
  Ranks ranks(3);
  const long before = calls_of_fake("AllReduceConfig", kLatest);
  CHECK(add_far_apart(ranks, value, [&](int) { return &exact; }) == ncclInvalidUsage);
  CHECK(calls_of_fake("AllReduceConfig", kLatest) == before);
  CHECK(add_far_apart(ranks, value, [&](int) { return &replicated; }) == ncclSuccess);
  CHECK(calls_of_fake("AllReduceConfig", kLatest) == before + 3);
}

TEST_CASE("encryption is refused, as sockets of plans would not be encrypted [case-101]") {
  const ServedBy served(kLatest, true);
  ncclEncryptionConfig_t config{sizeof config, MSCCLC_NCCL_MAGIC, 23203, 1,
                                "0123456789abcdef0123456789abcdef"};
  CHECK(ncclSetEncryption(&config) == ncclInvalidUsage);
  CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("does not encrypt its sockets"));
  CHECK(calls_of_fake("SetEncryption", kLatest) == 0);
  config.mode = 0;
  CHECK(ncclSetEncryption(&config) == ncclSuccess);
  CHECK(ncclSetEncryption(nullptr) == ncclSuccess);
  CHECK(calls_of_fake("SetEncryption", kLatest) == 2);
  config.magic = 1;
  CHECK(ncclSetEncryption(&config) == ncclInvalidArgument);
}

}  // namespace
}  // namespace mscclc::nccl::testing
