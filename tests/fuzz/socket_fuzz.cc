// Fuzzes what comes to a lane over sockets from outside. The first byte says what: 'o', orders of
// two connections; 'a', answers to a sender; 'g', greetings and offers. Orders are fed in two ways,
// whole and in pieces, which must come to the same, and write nothing but what is exposed.
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "runtime/network/order_reader.h"
#include "runtime/network/sockets/sender.h"

namespace {

using namespace mscclc;
using namespace mscclc::net;
using Input = std::span<const uint8_t>;

void expect(bool good) {
  if (!good) std::abort();
}

constexpr uint64_t kWords = 64, kMargin = 8;  // of memory; a peer may write what lies between
constexpr uint64_t kUntouched = 0x5a5a5a5a5a5a5a5a;

/// One lane's far end; its orders come by two connections in turn.
class FarEnd {
 public:
  FarEnd() : memory_(std::make_shared<std::vector<uint64_t>>(kWords, kUntouched)) {
    lane_.memory = std::make_shared<ExposedMemory>();
    lane_.answer = [this](uint32_t, uint64_t number) {
      answers.push_back(number);
      return true;
    };
    auto* data = reinterpret_cast<uint8_t*>(memory_->data() + kMargin);
    lane_.memory->add(memory_, data, (kWords - 2 * kMargin) * sizeof(uint64_t));
    const auto freed = std::make_shared<int>();
    lane_.memory->add(freed, data, sizeof *freed);
  }

  /// Bytes of one connection, at most `most` at once, until it waits for the other.
  void feed(int connection, Input bytes, size_t most) {
    OrderReader& reader = readers_[connection];
    for (size_t at = 0; at < bytes.size();) {
      const auto room = reader.room();
      expect(!room.empty());
      const size_t count = std::min({room.size(), most, bytes.size() - at});
      std::memcpy(room.data(), bytes.data() + at, count);
      reader.received(count);
      at += count;
      const OrderReader::State state = reader.go_on();
      waited |= state == OrderReader::State::waits;
      if (state != OrderReader::State::more) return;
    }
  }
  /// Lets both go on as far as they can.
  void settle() {
    for (int i = 0; i < 2; ++i) {
      for (OrderReader& reader : readers_) (void)reader.go_on();
    }
  }
  void check_margins() const {
    for (uint64_t i = 0; i < kMargin; ++i) {
      expect((*memory_)[i] == kUntouched && (*memory_)[kWords - 1 - i] == kUntouched);
    }
  }
  /// Orders that were carried out, by connection.
  std::pair<uint64_t, uint64_t> done() const {
    return {lane_.connections[0].done, lane_.connections[1].done};
  }
  bool same_as(const FarEnd& other) const {
    return *memory_ == *other.memory_ && answers == other.answers && done() == other.done();
  }

  std::vector<uint64_t> answers;
  bool waited = false;

 private:
  std::shared_ptr<std::vector<uint64_t>> memory_;
  IncomingLane lane_{.memory = {}, .answer = {}, .connections = {2, IncomingLane::Progress{}}};
  OrderReader readers_[2] = {{lane_, 0}, {lane_, 1}};
};

/// byte 0: how finely it is cut; byte 1: where the second connection's bytes begin, in 256ths.
void fuzz_orders(Input input) {
  if (input.size() < 2) return;
  const size_t most = size_t{input[0]} + 1;
  const size_t all = std::min<size_t>(input.size() - 2, 32 << 10);  // both readers hold it
  const Input bytes = input.subspan(2, all);
  const size_t cut = all * input[1] / 256;
  FarEnd whole, pieces;
  for (FarEnd* far : {&whole, &pieces}) {
    far->feed(1, bytes.subspan(cut), far == &whole ? SIZE_MAX : most);
    far->feed(0, bytes.first(cut), far == &whole ? SIZE_MAX : most);
    far->settle();
    far->check_margins();
  }
  // What waits takes no more pieces; whole, it has them already.
  expect(pieces.waited || whole.waited || whole.same_as(pieces));
}

void fuzz_answers(Input input) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return;
  const Fd far(ends[0]);
  Sender sender(Fd(ends[1]), 1);
  const ssize_t sent = ::send(far.get(), input.data(), input.size(), MSG_NOSIGNAL);
  ::shutdown(far.get(), SHUT_WR);
  uint64_t taken = 0;
  while (const auto answer = sender.next_answer()) {
    taken += sizeof answer->number + (answer->number == kRefused ? kRefusalBytes : 0);
    expect(answer->refusal.size() <= kRefusalBytes);
  }
  expect(sender.ended());
  expect(sent <= 0 || taken <= static_cast<uint64_t>(sent));
}

void fuzz_greetings(Input input) {
  if (const auto offer = decode_offer(input)) expect(std::ranges::equal(encode(*offer), input));
  if (const auto challenge = decode_challenge(input)) {
    expect(std::ranges::equal(encode(*challenge), input));
  }
  if (const auto welcome = decode_welcome(input)) {
    expect(std::ranges::equal(encode(*welcome), input));
  }
  if (const auto hello = decode_hello(input)) {
    expect(std::ranges::equal(encode(*hello), input));
    expect(hello->connection < hello->connections && hello->connections <= kMaxConnections);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const Input rest(data + 1, size - 1);
  if (data[0] == 'o') fuzz_orders(rest);
  if (data[0] == 'a') fuzz_answers(rest);
  if (data[0] == 'g') fuzz_greetings(rest);
  return 0;
}
