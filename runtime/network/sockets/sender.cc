#include "runtime/network/sockets/sender.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace mscclc::net {
namespace {

constexpr uint64_t kBytesInARow = 1 << 20;
constexpr uint8_t kZeros[Order::kWord] = {};

}  // namespace

void Batch::add(const void* from, uint64_t bytes) {
  const uint64_t skipped = std::min(skip_, bytes);
  skip_ -= skipped;
  if (bytes == skipped) return;
  auto* at = static_cast<uint8_t*>(const_cast<void*>(from)) + skipped;
  parts_[count_++] = {at, static_cast<size_t>(bytes - skipped)};
}

ssize_t Batch::send(const Fd& socket) {
  msghdr message{};
  message.msg_iov = parts_;
  message.msg_iovlen = count_;
  return ::sendmsg(socket.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void Sender::push(const Order& order, const uint8_t* from) {
  queue_.push_back({order, from});
  bytes_ += queue_.back().bytes();
  parts_ += queue_.back().is_part();
  ++pushed_;
}

Batch Sender::batch() const {
  Batch batch(begun_);
  const size_t orders = std::min(queue_.size(), Batch::kMaxOrders);
  for (size_t i = 0; i < orders; ++i) {
    const Queued& queued = queue_[i];
    batch.add(&queued.order, sizeof queued.order);
    batch.add(queued.from, queued.bytes());
    batch.add(kZeros, Order::padding(queued.bytes()));
  }
  return batch;
}

void Sender::take_sent(uint64_t bytes) {
  begun_ += bytes;
  while (!queue_.empty() && begun_ >= queue_.front().wire_bytes()) {
    begun_ -= queue_.front().wire_bytes();
    bytes_ -= queue_.front().bytes();
    parts_ -= queue_.front().is_part();
    queue_.pop_front();
  }
}

bool Sender::send_some() {
  for (uint64_t sent = 0; !queue_.empty() && sent < kBytesInARow;) {
    const ssize_t n = batch().send(socket_);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    take_sent(static_cast<uint64_t>(n));
    sent += static_cast<uint64_t>(n);
  }
  return true;
}

std::optional<Sender::Answer> Sender::next_answer() {
  for (;;) {
    Answer answer;
    const size_t have = answers_.size();
    if (have >= sizeof answer.number) {
      std::memcpy(&answer.number, answers_.data(), sizeof answer.number);
      const bool refused = answer.number == kRefused;
      if (!refused || have == sizeof answer.number + kRefusalBytes) {
        const char* text = reinterpret_cast<const char*>(answers_.data()) + sizeof answer.number;
        if (refused) answer.refusal.assign(text, ::strnlen(text, kRefusalBytes));
        answers_.clear();
        return answer;
      }
    }
    uint8_t bytes[kRefusalBytes];
    const size_t wanted = have < sizeof answer.number ? sizeof answer.number - have
                                                      : sizeof answer.number + kRefusalBytes - have;
    const ssize_t n = ::recv(socket_.get(), bytes, wanted, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return std::nullopt;
    if (n <= 0) {
      ended_ = true;
      error_ = n == 0 ? 0 : errno;
      return std::nullopt;
    }
    answers_.insert(answers_.end(), bytes, bytes + n);
  }
}

void Sender::close_writing() {
  queue_.clear();
  bytes_ = parts_ = 0;
  ::shutdown(socket_.get(), SHUT_WR);
}

}  // namespace mscclc::net
