#include "runtime/net/order_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "executor/words.h"

namespace mscclc::net {

OrderReader::OrderReader(IncomingLane& lane, uint32_t connection)
    : lane_(lane),
      connection_(connection),
      buffer_(std::make_unique_for_overwrite<uint8_t[]>(kBuffer)) {}

// What is left is less than a word or an order: whole words stay on words.
std::span<uint8_t> OrderReader::room() {
  if (begin_ > 0 && state_ == State::more) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, held());
    end_ = held();
    begin_ = 0;
  }
  return {buffer_.get() + end_, kBuffer - end_};
}

OrderReader::State OrderReader::go_on() {
  if (state_ == State::waits) state_ = fence();
  while (state_ == State::more) {
    if (coming_ > 0) {
      if (!take_bytes()) break;
    } else if (held() >= sizeof order_) {
      std::memcpy(&order_, buffer_.get() + begin_, sizeof order_);
      begin_ += sizeof order_;
      state_ = begin_order();
    } else {
      break;
    }
  }
  return state_;
}

OrderReader::State OrderReader::begin_order() {
  switch (order_.what) {
    case Order::put:
      return begin_put();
    case Order::signal:
      return signal();
    case Order::flush:
      return lane_.answer(connection_, order_.value)
                 ? finish()
                 : bad("flushes whose answers it does not read");
    case Order::fence:
      return fence();
    case Order::bye:
      return State::bye;
  }
  return bad(fmt::format("order {}, which there is not", order_.what));
}

OrderReader::State OrderReader::begin_put() {
  if (order_.value == 0 || order_.value > kMostPut) {
    return bad(fmt::format("a put of {} bytes", order_.value));
  }
  piece_ = lane_.memory->find(order_.memory, order_.offset, order_.value);
  if (piece_.state == ExposedMemory::Piece::State::unknown) return wrong_place(order_.value);
  copied_ = 0;
  coming_ = order_.value + Order::padding(order_.value);
  return State::more;
}

/// False: no whole word has come.
bool OrderReader::take_bytes() {
  const uint64_t come = std::min<uint64_t>(held(), coming_) / Order::kWord * Order::kWord;
  if (come == 0) return false;
  const uint64_t data = std::min(come, order_.value - copied_);
  if (piece_.data != nullptr) copy_words(piece_.data + copied_, buffer_.get() + begin_, data);
  begin_ += come;
  copied_ += data;
  coming_ -= come;
  if (coming_ == 0) state_ = finish();
  return true;
}

OrderReader::State OrderReader::signal() {
  const auto piece = lane_.memory->find(order_.memory, order_.offset, sizeof order_.value);
  const bool aligned = reinterpret_cast<uintptr_t>(piece.data) % sizeof order_.value == 0;
  if (piece.state == ExposedMemory::Piece::State::unknown || !aligned) {
    return wrong_place(sizeof order_.value);
  }
  if (piece.data != nullptr) store_release(piece.data, order_.value);
  return finish();
}

OrderReader::State OrderReader::fence() {
  if (order_.connection >= lane_.done.size()) {
    return bad(
        fmt::format("a fence for connection {}, of {}", order_.connection, lane_.done.size()));
  }
  return lane_.done[order_.connection] < order_.value ? State::waits : finish();
}

OrderReader::State OrderReader::finish() {
  ++lane_.done[connection_];
  piece_ = {};
  return State::more;
}

OrderReader::State OrderReader::wrong_place(uint64_t bytes) {
  return bad(fmt::format("{} bytes at byte {} of memory {}, which it may not write", bytes,
                         order_.offset, order_.memory));
}

OrderReader::State OrderReader::bad(std::string why) {
  why_ = std::move(why);
  return State::bad;
}

}  // namespace mscclc::net
