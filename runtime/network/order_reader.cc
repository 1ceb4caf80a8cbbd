#include "runtime/network/order_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "executor/shared_atomics.h"

namespace mscclc::net {

OrderReader::OrderReader(IncomingLane& lane, uint32_t connection)
    : lane_(lane),
      connection_(connection),
      buffer_(std::make_unique_for_overwrite<uint8_t[]>(kBuffer)) {
  lane.connections[connection].open = true;
}

// What is left is less than a word or an order: whole words stay on words. The bytes of a put to a
// device come where they are copied from.
std::span<uint8_t> OrderReader::room() {
  if (room_ != nullptr && held() == 0 && state_ == State::more) {
    begin_ = end_ = 0;
    return {room_->data() + copied_, coming_};
  }
  if (begin_ > 0 && state_ == State::more) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, held());
    end_ = held();
    begin_ = 0;
  }
  const size_t most = most_room();
  return {buffer_.get() + end_, most > end_ ? most - end_ : 0};
}

size_t OrderReader::most_room() const {
  if (coming_ == 0) return lands_ || lane_.apart ? kOrders : kBuffer;
  return lane_.apart ? std::min<uint64_t>(kBuffer, coming_ + kOrders) : kBuffer;
}

void OrderReader::received(size_t bytes) {
  if (room_ != nullptr && end_ == 0) {
    count_bytes(bytes);
  } else {
    end_ += bytes;
  }
}

OrderReader::State OrderReader::go_on() {
  if (state_ == State::waits) state_ = fence();
  while (state_ == State::more) {
    if (in_put_) {
      take();
      if (coming_ > 0) break;
      state_ = end_put();
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
    case Order::part:
      return begin_put();
    case Order::signal:
      return signal();
    case Order::flush:
      return flush();
    case Order::fence:
      return fence();
    case Order::bye:
      return bye();
    case Order::note:
      return note();
  }
  return bad(fmt::format("order {}, which does not exist", order_.what));
}

OrderReader::State OrderReader::begin_put() {
  if (order_.value == 0 || order_.value > kMaxPut) {
    return bad(fmt::format("a put of {} bytes", order_.value));
  }
  piece_ = lane_.memory->find(order_.memory, order_.offset, order_.value);
  if (piece_.state == ExposedMemory::Piece::State::unknown) return wrong_place(order_.value);
  in_put_ = true;
  copied_ = 0;
  coming_ = order_.value + Order::padding(order_.value);
  lands_ = piece_.data != nullptr && piece_.place == MemoryPlace::device;
  return lands_ ? begin_landing() : State::more;
}

OrderReader::State OrderReader::begin_landing() {
  if (lane_.landing == nullptr) return bad("a put to a device, for which it is not made");
  room_ = lane_.landing->room(coming_);
  return room_ != nullptr ? State::more : bad(cannot_land());
}

void OrderReader::take() {
  if (room_ != nullptr) {
    take_into_room();
  } else {
    take_in_words();
  }
}

/// Blocks may look at any word of it: packets.
void OrderReader::take_in_words() {
  const uint64_t come = std::min<uint64_t>(held(), coming_) / Order::kWord * Order::kWord;
  if (come == 0) return;
  const uint64_t data = std::min(come, order_.value - copied_);
  if (piece_.data != nullptr) copy_words(piece_.data + copied_, buffer_.get() + begin_, data);
  begin_ += come;
  count_bytes(come);
}

void OrderReader::take_into_room() {
  const uint64_t come = std::min<uint64_t>(held(), coming_);
  if (come == 0) return;
  std::memcpy(room_->data() + copied_, buffer_.get() + begin_, come);
  begin_ += come;
  count_bytes(come);
}

void OrderReader::land() {
  if (room_ == nullptr || coming_ > 0) return;
  landed_ = lane_.landing->land(piece_, std::move(room_), order_.value);
}

/// With the padding, at the put's end.
void OrderReader::count_bytes(uint64_t come) {
  copied_ += come;
  coming_ -= come;
}

OrderReader::State OrderReader::end_put() {
  land();
  in_put_ = false;
  return landed_ ? finish() : bad(cannot_land());
}

OrderReader::State OrderReader::signal() {
  const auto piece = lane_.memory->find(order_.memory, order_.offset, sizeof order_.value);
  const bool aligned = reinterpret_cast<uintptr_t>(piece.data) % sizeof order_.value == 0;
  if (piece.state == ExposedMemory::Piece::State::unknown || !aligned) {
    return wrong_place(sizeof order_.value);
  }
  if (piece.data == nullptr) return finish();
  // What was landed before is there first; the processor is faster where nothing is on its way.
  const bool at_once =
      piece.place == MemoryPlace::host && (lane_.landing == nullptr || lane_.landing->idle());
  if (at_once) {
    store_release(piece.data, order_.value);
  } else if (lane_.landing == nullptr) {
    return bad("a signal to a device, for which it is not made");
  } else if (!lane_.landing->signal(piece, order_.value)) {
    return bad(cannot_land());
  }
  return finish();
}

OrderReader::State OrderReader::flush() {
  if (order_.value == kGone || order_.value == kRefused) {
    return bad(fmt::format("flush {}, which does not exist", order_.value));
  }
  if (lane_.landing != nullptr && !lane_.landing->settle()) return bad(cannot_land());
  return lane_.answer(connection_, order_.value) ? finish()
                                                 : bad("flushes whose answers it does not read");
}

std::string OrderReader::cannot_land() const {
  return "orders that cannot be carried out: " + lane_.landing->why();
}

OrderReader::State OrderReader::note() {
  if (order_.connection != note_orders_) {
    return bad(fmt::format("part {} of a note after {}", order_.connection, note_orders_));
  }
  const uint64_t words[] = {order_.memory, order_.offset, order_.value};
  std::copy(std::begin(words), std::end(words), note_.begin() + 3 * note_orders_);
  if (++note_orders_ < Order::kNoteOrders) return finish();
  note_orders_ = 0;
  LaneNote whole;
  std::copy_n(note_.begin(), whole.size(), whole.begin());
  std::string why = lane_.noted ? lane_.noted(whole) : "";
  return why.empty() ? finish() : bad(std::move(why));
}

OrderReader::State OrderReader::fence() {
  auto& all = lane_.connections;
  if (order_.connection >= all.size()) {
    return bad(fmt::format("a fence for connection {}, of {}", order_.connection, all.size()));
  }
  all[connection_].fence = order_;
  if (!held_by(connection_)) return finish();
  const auto why = never_reached();
  return why ? bad(why->text()) : State::waits;
}

std::optional<uint32_t> OrderReader::held_by(uint32_t connection) const {
  const auto& fence = lane_.connections[connection].fence;
  const bool held = fence && lane_.connections[fence->connection].done < fence->value;
  return held ? std::optional(fence->connection) : std::nullopt;
}

/// Why the orders that the fence waits for cannot come any more. A sender's fences are for what it
/// has sent before them, so it has none of these.
std::optional<Error> OrderReader::never_reached() const {
  const auto& awaited = lane_.connections[order_.connection];
  if (!awaited.open) {
    return Error{fmt::format("a fence for order {} of connection {}, which brings {}", order_.value,
                             order_.connection, awaited.done)};
  }
  for (auto at = held_by(connection_); at; at = held_by(*at)) {
    if (*at == connection_) return Error{"fences that wait for one another"};
  }
  return std::nullopt;
}

OrderReader::State OrderReader::bye() {
  lane_.connections[connection_].open = false;
  return State::bye;
}

OrderReader::State OrderReader::finish() {
  auto& own = lane_.connections[connection_];
  ++own.done;
  own.fence.reset();
  piece_ = {};
  return State::more;
}

OrderReader::State OrderReader::wrong_place(uint64_t bytes) {
  return bad(fmt::format("{} bytes at byte {} of memory {}, which it may not write", bytes,
                         order_.offset, order_.memory));
}

/// What waits for it is refused, too; and its fence, which may be for itself, holds nothing up.
OrderReader::State OrderReader::bad(std::string why) {
  lane_.connections[connection_].open = false;
  lane_.connections[connection_].fence.reset();
  why_ = std::move(why);
  return State::bad;
}

}  // namespace mscclc::net
