// Fuzzes the two ends of a lane of messages. The first byte says which: 'e', its far end, which
// takes any bytes as orders of a peer; 'l', the lane, which takes any bytes as answers to its
// flushes. A model of a page says what must be in memory then, and who has failed.
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "runtime/devices/host/message_lane.h"
#include "tests/fuzz/lane_orders.h"

namespace {

using namespace mscclc;
using testing::kExposedBytes;
using testing::kFreedBytes;
using testing::LaneOrder;
using Bytes = std::vector<uint8_t>;
using Input = std::span<const uint8_t>;

void expect(bool good) {
  if (!good) std::abort();
}

/// A peer may write what lies between two margins, which stay as they are.
constexpr uint64_t kMargin = 64;

/// What the runs share, since starting it takes long.
struct Shared {
  Shared() { expect(server != nullptr && mapping != nullptr); }
  Diagnostics diagnostics;
  const std::shared_ptr<FdServer> server = FdServer::start(diagnostics);
  const std::shared_ptr<SharedMapping> mapping =
      SharedMapping::create(2 * kMargin + kExposedBytes, "memory", diagnostics);
};
Shared& shared() {
  static Shared once;
  return once;
}

/// What the far end must make of its orders.
class Model {
 public:
  Model() : memory(shared().mapping->bytes()) {}

  void run(Input orders) {
    LaneOrder order;
    while (!failed && testing::take(orders, order)) {
      const bool put = order.what == LaneOrder::kPut;
      if (order.what == LaneOrder::kFlush) {
        answers.push_back(order.value);
      } else if (!put && order.what != LaneOrder::kSignal) {
        failed = true;
      } else if (!allowed(order, put ? order.value : sizeof order.value)) {
        failed = true;
      } else if (put && order.value > orders.size()) {
        return;  // the rest never comes
      } else if (put) {
        write(order, orders.first(order.value));
        orders = orders.subspan(order.value);
      } else {
        write(order, {reinterpret_cast<const uint8_t*>(&order.value), sizeof order.value});
      }
    }
    goes_on = !failed && orders.empty();
  }

  Bytes memory;
  std::vector<uint64_t> answers;
  bool failed = false;
  bool goes_on = false;  ///< another order would be read as one

 private:
  /// No lane looks at memory that was freed; of what is long gone no size is known.
  static bool allowed(const LaneOrder& order, uint64_t bytes) {
    const auto within = [&](uint64_t size) {
      return order.offset <= size && bytes <= size - order.offset;
    };
    if (order.memory == testing::kForgotten) return true;
    if (order.memory == testing::kFreed) return within(kFreedBytes);
    const bool aligned = order.what == LaneOrder::kPut || order.offset % sizeof order.value == 0;
    return order.memory == testing::kExposed && within(kExposedBytes) && aligned;
  }
  void write(const LaneOrder& order, Input bytes) {
    if (order.memory != testing::kExposed) return;
    std::copy(bytes.begin(), bytes.end(), memory.begin() + kMargin + order.offset);
  }
};

/// All that is sent, unless the other end takes no more.
void send_all(const Fd& socket, Input bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return;
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
}

/// Asks the far end to flush, and takes all that it has answered by then.
void check_answers(const Fd& socket, std::vector<uint64_t> expected) {
  expected.push_back(~uint64_t{0});
  Bytes last;
  testing::append(last, LaneOrder{LaneOrder::kFlush, 0, 0, expected.back()});
  send_all(socket, last);
  std::vector<uint64_t> answers(expected.size());
  const size_t bytes = answers.size() * sizeof answers[0];
  expect(::recv(socket.get(), answers.data(), bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes));
  expect(answers == expected);
}

/// Answers that find no room are lost: so many have room on any machine.
constexpr size_t kAnswersKept = 16;

void fuzz_far_end(Input orders) {
  Diagnostics diagnostics;
  const auto& mapping = shared().mapping;
  std::fill_n(mapping->data(), mapping->bytes(), uint8_t{0});
  const auto memory = std::make_shared<ExposedMemory>();
  const auto freed = [&] {
    const auto gone = SharedMapping::create(kFreedBytes, "memory", diagnostics);
    return memory->add(gone, gone->data(), kFreedBytes);
  };
  expect(freed() == testing::kForgotten);
  expect(memory->add(mapping, mapping->data() + kMargin, kExposedBytes) == testing::kExposed);
  expect(freed() == testing::kFreed);
  std::string why;
  auto end = await_messages(
      1, shared().server, memory, [&](const std::string& text) { why = text; }, diagnostics);
  expect(end != nullptr);
  const Fd near = fetch_fd(end->offer(), {}, {}, diagnostics);
  expect(near.valid());
  send_all(near, orders);
  Model model;
  model.run(orders);
  if (model.goes_on && model.answers.size() <= kAnswersKept) check_answers(near, model.answers);
  end.reset();  // what has been sent is read before its thread ends
  expect(model.failed == !why.empty());
  expect(std::equal(model.memory.begin(), model.memory.end(), mapping->data()));
}

void fuzz_lane(Input answers) {
  Diagnostics diagnostics;
  int ends[2];
  expect(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const Fd far(ends[0]);
  Bytes offer;
  {
    const Fd near(ends[1]);
    offer = shared().server->offer(near.get(), {}, diagnostics);
  }
  const auto lane = open_messages({7, offer}, {}, diagnostics);
  shared().server->withdraw(offer);
  expect(lane != nullptr);
  send_all(far, answers);
  ::shutdown(far.get(), SHUT_WR);

  bool gone = false, right = true;
  for (uint64_t flush = 1; flush <= 3 && right; ++flush) {
    for (uint64_t said = 0; !gone && right && said != flush;) {
      right = testing::take(answers, said);
      gone = right && said == testing::kGone;
    }
    expect(lane->flush(diagnostics) == right);
    expect(diagnostics.has_errors() == !right);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const Input input(data + 1, size - 1);
  if (data[0] == 'e') fuzz_far_end(input);
  if (data[0] == 'l') fuzz_lane(input);
  return 0;
}
