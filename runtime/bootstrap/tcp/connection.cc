#include "runtime/bootstrap/tcp/connection.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

#include "runtime/support/process/proc.h"

namespace mscclc {
namespace {

constexpr size_t kReadAtOnce = 64 << 10;
constexpr int kReadsInARow = 4;

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

Connection::Connection(Fd socket, uint64_t limit) : socket_(std::move(socket)), in_(limit) {}

std::optional<int32_t> Connection::process(uint32_t said, uint64_t began) const {
  if (const auto process = peer_process(socket_)) return process;
  const Address own = own_end(socket_), other = other_end(socket_);
  if (own.family() == AF_UNSPEC || own.is_local() || own.host() != other.host())
    return std::nullopt;
  const auto process = static_cast<int32_t>(said);
  const auto facts = facts_of(process);
  return facts && began != 0 && facts->began == began ? std::optional(process) : std::nullopt;
}

void Connection::set_silence(std::chrono::milliseconds silence) {
  set_options(socket_, std::chrono::ceil<std::chrono::seconds>(silence));
}

bool Connection::seal(const wire::SessionKey& out, const wire::SessionKey& in) {
  sealer_.emplace(out);
  opener_.emplace(in);
  const wire::Bytes rest = in_.take_rest();
  return take(rest);
}

/// false: it is not what the other end has sealed.
bool Connection::take(wire::Payload bytes) {
  if (!opener_) return in_.feed(bytes), true;
  opener_->feed(bytes);
  wire::Bytes plain;
  for (;;) {
    const wire::Opener::Next next = opener_->next(plain);
    if (next == wire::Opener::Next::more) return true;
    if (next == wire::Opener::Next::bad) break;
    in_.feed(plain);
  }
  tampered_ = true;
  why_ = fmt::format(
      "what came as record {} is not what the other end has sent: it was changed, dropped, "
      "repeated "
      "or reordered on its way",
      opener_->opened() + 1);
  return false;
}

bool Connection::read_some() {
  // Not on the stack: the caller's may be small ('ulimit -s').
  const auto buffer = std::make_unique_for_overwrite<uint8_t[]>(kReadAtOnce);
  for (int i = 0; i < kReadsInARow && !tampered_; ++i) {
    const ssize_t got = ::recv(socket_.get(), buffer.get(), kReadAtOnce, 0);
    if (got > 0) {
      if (!take({buffer.get(), static_cast<size_t>(got)})) return false;
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && would_block(errno)) return true;
    why_ = got == 0 ? "its connection was closed" : error_text(errno);
    return false;
  }
  return !tampered_;
}

/// Makes the next bytes ready. Frames are sealed when their turn comes, so that those which many
/// are sent are in memory once. false: there are none.
bool Connection::prepare() {
  ready_.clear();
  written_ = 0;
  if (out_.empty()) return false;
  const auto& [frame, sealed] = out_.front();
  if (!sealed) {
    ready_ = *frame;
    out_.pop_front();
    return true;
  }
  const uint64_t count = std::min(frame->size() - taken_, wire::kMaxRecord);
  sealer_->seal(wire::Payload(*frame).subspan(taken_, count), ready_);
  taken_ += count;
  if (taken_ < frame->size()) return true;
  out_.pop_front();
  taken_ = 0;
  return true;
}

bool Connection::write_some() {
  while (written_ < ready_.size() || prepare()) {
    const ssize_t put =
        ::send(socket_.get(), ready_.data() + written_, ready_.size() - written_, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && would_block(errno)) return true;
    if (put < 0) {
      why_ = error_text(errno);
      return false;
    }
    written_ += static_cast<uint64_t>(put);
  }
  return true;
}

void Connection::end_writing() { ::shutdown(socket_.get(), SHUT_WR); }

}  // namespace mscclc
