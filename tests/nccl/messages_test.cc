// Sends and receives by plans: groups of any pattern, beside other calls and those of the fallback,
// and messages that are never received.
#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>

#include "tests/nccl/forwarded_calls.h"
#include "tests/nccl/test_ranks.h"

namespace mscclc::nccl::testing {
namespace {

/// How many messages the fake NCCL got.
long messages_of_fake() { return calls_of_fake("Send") + calls_of_fake("Recv"); }

/// Plans that serve short calls only.
class ShortCalls final : public ForwardedCalls {
 public:
  using ForwardedCalls::ForwardedCalls;
  std::unique_ptr<ServedCall> serve(const CollectiveCall& call, StreamHandle stream, bool capturing,
                                    std::string* what) override {
    return call.count < 1000 ? ForwardedCalls::serve(call, stream, capturing, what) : nullptr;
  }
};

/// Runs fn(rank, communicator) on a thread for each rank; all must succeed.
void on_ranks(Ranks& ranks, const std::function<ncclResult_t(int rank, ncclComm_t comm)>& fn) {
  on_threads(ranks.size(), [&](int r) { ranks.results[r] = fn(r, ranks.comms[r]); });
  INFO(ncclGetLastError(nullptr));
  REQUIRE(ranks.results == std::vector<ncclResult_t>(ranks.size(), ncclSuccess));
}

TEST_CASE("a pair, without groups and in both directions at once [case-44]") {
  const ServedBy served(kFakeNccl, true);
  const Setting lazy("MSCCLC_NCCL_COMM", "lazy");
  Ranks ranks(2);
  const long before = messages_of_fake();
  for (const size_t count : {size_t{1}, size_t{3000}, size_t{100000}}) {
    std::vector<int> in[2], out[2];
    for (int r = 0; r < 2; ++r) {
      in[r].resize(count);
      std::iota(in[r].begin(), in[r].end(), 1000 * r);
      out[r].assign(count, -1);
    }
    on_ranks(ranks, [&](int r, ncclComm_t comm) {
      return r == 0 ? ncclSend(in[0].data(), count, kInt32, 1, comm, nullptr)
                    : ncclRecv(out[1].data(), count, kInt32, 0, comm, nullptr);
    });
    CHECK(out[1] == in[0]);
    out[1].assign(count, -1);
    on_ranks(ranks, [&](int r, ncclComm_t comm) {
      ncclGroupStart();
      (void)ncclSend(in[r].data(), count, kInt32, 1 - r, comm, nullptr);
      (void)ncclRecv(out[r].data(), count, kInt32, 1 - r, comm, nullptr);
      return ncclGroupEnd();
    });
    CHECK(out[0] == in[1]);
    CHECK(out[1] == in[0]);
  }
  CHECK(messages_of_fake() == before);
}

TEST_CASE("several messages of a group to one peer come in their order [case-65]") {
  const ServedBy served(nullptr, true);
  Ranks ranks(2);
  int in[3] = {1, 2, 3}, out[3] = {};
  on_ranks(ranks, [&](int r, ncclComm_t comm) {
    ncclGroupStart();
    for (int i = 0; i < 3; ++i) {
      if (r == 0) (void)ncclSend(&in[i], 1, kInt32, 1, comm, nullptr);
      if (r == 1) (void)ncclRecv(&out[i], 1, kInt32, 0, comm, nullptr);
    }
    return ncclGroupEnd();
  });
  CHECK(std::equal(in, in + 3, out));
}

// Rank 1 has both of its messages in one group. Rank 0 does not send before it has received, and
// rank 2 neither: the message that rank 1 sends must go though the one that it receives has not
// come.
TEST_CASE("messages of a group do not wait for one another") {
  const ServedBy served(nullptr, true);
  Ranks ranks(3);
  Diagnostics diagnostics;
  StreamHandle streams[3];
  for (int r = 0; r < 3; ++r) {
    streams[r] = find_comm(ranks.comms[r])->device->create_stream(diagnostics);
    REQUIRE(streams[r] != nullptr);
  }
  for (int round = 0; round < 3; ++round) {
    int value[3] = {10, 20, 30}, out[3] = {};
    const auto message = [&](bool sends, int r, int peer, ncclComm_t comm) {
      const auto stream = static_cast<cudaStream_t>(streams[r]);
      return sends ? ncclSend(&value[r], 1, kInt32, peer, comm, stream)
                   : ncclRecv(&out[r], 1, kInt32, peer, comm, stream);
    };
    on_ranks(ranks, [&](int r, ncclComm_t comm) {
      if (r == 1) {
        ncclGroupStart();
        (void)message(false, 1, 0, comm);
        (void)message(true, 1, 2, comm);
        return ncclGroupEnd();
      }
      const ncclResult_t result = message(false, r, r == 0 ? 2 : 1, comm);
      return result == ncclSuccess ? message(true, r, r == 0 ? 1 : 0, comm) : result;
    });
    for (int r = 0; r < 3; ++r) {
      CHECK(find_comm(ranks.comms[r])->device->synchronize(streams[r], diagnostics));
    }
    CHECK(out[0] == 30);
    CHECK(out[1] == 10);
    CHECK(out[2] == 20);
  }
  for (int r = 0; r < 3; ++r) find_comm(ranks.comms[r])->device->destroy_stream(streams[r]);
}

TEST_CASE("messages between collectives keep their order") {
  const ServedBy served(kFakeNccl, true);
  const Setting lazy("MSCCLC_NCCL_COMM", "lazy");
  Ranks ranks(2);
  int value[2] = {1, 2}, got[2] = {};
  on_ranks(ranks, [&](int r, ncclComm_t comm) {
    (void)ncclAllReduce(&value[r], &value[r], 1, kInt32, kSum, comm, nullptr);
    ncclGroupStart();
    (void)ncclSend(&value[r], 1, kInt32, 1 - r, comm, nullptr);
    (void)ncclRecv(&got[r], 1, kInt32, 1 - r, comm, nullptr);
    (void)ncclGroupEnd();
    return ncclAllReduce(&got[r], &got[r], 1, kInt32, kSum, comm, nullptr);
  });
  CHECK(got[0] == 6);
  CHECK(got[1] == 6);
}

TEST_CASE("messages by plans and by the fallback in one group [case-59]") {
  const ServedBy served(kFakeNccl, true);
  serve_by<ShortCalls>();
  const Setting lazy("MSCCLC_NCCL_COMM", "lazy");
  Ranks ranks(2);
  constexpr size_t kMany = 100000;
  std::vector<int> sums[2] = {std::vector<int>(kMany), std::vector<int>(kMany)};
  on_ranks(ranks, [&](int r, ncclComm_t comm) {  // makes the fallback's communicator
    return ncclAllReduce(sums[r].data(), sums[r].data(), kMany, kInt32, kSum, comm, nullptr);
  });
  const long before = messages_of_fake();
  std::vector<int> in(kMany, 5);
  std::vector<int> out[2] = {std::vector<int>(kMany), std::vector<int>(kMany)};
  int one[2] = {7, 8}, got[2] = {};
  on_ranks(ranks, [&](int r, ncclComm_t comm) {
    ncclGroupStart();
    (void)ncclSend(in.data(), kMany, kInt32, 1 - r, comm, nullptr);
    (void)ncclSend(&one[r], 1, kInt32, 1 - r, comm, nullptr);
    (void)ncclRecv(out[r].data(), kMany, kInt32, 1 - r, comm, nullptr);
    (void)ncclRecv(&got[r], 1, kInt32, 1 - r, comm, nullptr);
    return ncclGroupEnd();
  });
  CHECK(out[0] == in);
  CHECK(out[1] == in);
  CHECK(got[0] == 8);
  CHECK(got[1] == 7);
  CHECK(messages_of_fake() == before + 4);
}

TEST_CASE("the fallback has messages where its communicator is made with ours") {
  const ServedBy served(kFakeNccl, true);
  Ranks ranks(2);
  const long before = messages_of_fake();
  int sent[2] = {1, 2}, got[2] = {};
  on_ranks(ranks, [&](int r, ncclComm_t comm) {
    ncclGroupStart();
    (void)ncclSend(&sent[r], 1, kInt32, 1 - r, comm, nullptr);
    (void)ncclRecv(&got[r], 1, kInt32, 1 - r, comm, nullptr);
    return ncclGroupEnd();
  });
  CHECK(got[0] == 2);
  CHECK(got[1] == 1);
  CHECK(messages_of_fake() == before + 4);
}

TEST_CASE("a message that no plan serves does not make the fallback's communicator") {
  const ServedBy served(kFakeNccl, true);
  serve_by<ShortCalls>();
  const Setting lazy("MSCCLC_NCCL_COMM", "lazy");
  Ranks ranks(2);
  std::vector<int> in(1000), out(1000);
  // Only two of many ranks may come to it.
  on_threads(2, [&](int r) {
    ranks.results[r] = r == 0
                           ? ncclSend(in.data(), in.size(), kInt32, 1, ranks.comms[0], nullptr)
                           : ncclRecv(out.data(), out.size(), kInt32, 0, ranks.comms[1], nullptr);
  });
  CHECK(ranks.results == std::vector<ncclResult_t>(2, ncclInvalidUsage));
  CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("MSCCLC_NCCL_COMM"));
}

TEST_CASE("messages to oneself must match in their group [case-44]") {
  const ServedBy served(nullptr, true);
  Ranks ranks(1 + GENERATE(0, 1));
  int in[2] = {4, 5}, out[2] = {};
  ncclComm_t c = ranks.comms[0];
  CHECK(ncclSend(in, 1, kInt32, 0, c, nullptr) == ncclInvalidUsage);
  CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("no matching call to itself"));
  CHECK(ncclRecv(out, 1, kInt32, 0, c, nullptr) == ncclInvalidUsage);
  ncclGroupStart();
  (void)ncclSend(in, 2, kInt32, 0, c, nullptr);
  (void)ncclRecv(out, 1, kInt32, 0, c, nullptr);
  CHECK(ncclGroupEnd() == ncclInvalidUsage);
  CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("sends 8 bytes to itself, and receives 4"));
  ncclGroupStart();
  (void)ncclRecv(&out[0], 1, kInt32, 0, c, nullptr);
  (void)ncclRecv(&out[1], 1, kInt32, 0, c, nullptr);
  (void)ncclSend(&in[0], 1, kInt32, 0, c, nullptr);
  (void)ncclSend(&in[1], 1, kInt32, 0, c, nullptr);
  CHECK(ncclGroupEnd() == ncclSuccess);
  CHECK(out[0] == 4);
  CHECK(out[1] == 5);
}

TEST_CASE("a first message that is never received is an error after MSCCLC_TIMEOUT") {
  const ServedBy served(nullptr, true);
  int value = 1;
  Ranks ranks(2);
  const Setting soon("MSCCLC_TIMEOUT", "1");
  CHECK(ncclSend(&value, 1, kInt32, 1, ranks.comms[0], nullptr) == ncclRemoteError);
  CHECK_THAT(
      ncclGetLastError(nullptr),
      Catch::Contains("ncclSend: no peer: error: messages from rank 0 (rank 0 here) to rank 1"));
}

TEST_CASE("abort ends a message that is never received [case-79]") {
  const ServedBy served(nullptr, true);
  int value = 1, got = 0;  // what messages use outlives what may still send them
  Ranks ranks(2);
  const auto send = [&] { return ncclSend(&value, 1, kInt32, 1, ranks.comms[0], nullptr); };
  on_ranks(ranks, [&](int r, ncclComm_t comm) {
    return r == 0 ? send() : ncclRecv(&got, 1, kInt32, 0, comm, nullptr);
  });
  CHECK(got == 1);
  // Short messages may go without the receiver, but not any number of them.
  std::atomic<bool> begun{false};
  ncclResult_t result = ncclSuccess;
  std::thread sender([&] {
    begun = true;
    while (result == ncclSuccess) result = send();
  });
  while (!begun) std::this_thread::yield();
  CHECK(ncclCommAbort(ranks.comms[0]) == ncclSuccess);
  sender.join();
  CHECK(result != ncclSuccess);
  CHECK(ncclCommAbort(ranks.comms[1]) == ncclSuccess);
  ranks.comms.clear();
}

/// Whether abort ends a first message of `own` at once. Its hub does not wait for a peer that
/// learns it elsewhere; that took five seconds, as it may where a thread gets no processor for so
/// long.
bool first_message_ends_soon(int own) {
  Ranks ranks(2);
  int value = 1;
  std::atomic<bool> begun{false};
  ncclResult_t result = ncclSuccess;
  std::thread sender([&] {
    begun = true;
    result = ncclSend(&value, 1, kInt32, 1 - own, ranks.comms[own], nullptr);
  });
  while (!begun) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // so that it mostly waits by then
  const auto aborted = std::chrono::steady_clock::now();
  CHECK(ncclCommAbort(ranks.comms[own]) == ncclSuccess);
  sender.join();
  const bool soon = std::chrono::steady_clock::now() - aborted < std::chrono::seconds(5);
  INFO(ncclGetLastError(nullptr));
  CHECK((result == ncclInvalidUsage || result == ncclInvalidArgument));
  CHECK(ncclCommAbort(ranks.comms[1 - own]) == ncclSuccess);
  ranks.comms.clear();
  return soon;
}

TEST_CASE("abort ends a first message that is never received [case-79]") {
  const ServedBy served(nullptr, true);
  const int own = GENERATE(0, 1);  // the rank that serves the meeting, and the other
  bool soon = false;
  for (int i = 0; i < 3 && !soon; ++i) soon = first_message_ends_soon(own);
  CHECK(soon);
}

}  // namespace
}  // namespace mscclc::nccl::testing
