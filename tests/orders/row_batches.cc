#include "tests/orders/row_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "tests/runtime/ranks.h"

namespace mscclc::testing {

std::vector<uint8_t> random_floats(uint64_t count, uint32_t element, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint8_t> data(count * element);
  for (uint64_t i = 0; i < data.size(); i += element) {
    const uint64_t top = uint64_t{0x7} << (8 * element - 4);
    const uint64_t bits = (random() & ~top) | (uint64_t{0x3} << (8 * element - 4));
    std::memcpy(data.data() + i, &bits, element);
  }
  return data;
}

namespace {

using Bytes = std::vector<uint8_t>;

/// How a batch is all-reduced: the eight forms come in turn.
struct Form {
  explicit Form(uint64_t number)
      : in_place((number & 1) != 0), registered((number & 2) != 0), shifted((number & 4) != 0) {}
  bool in_place, registered, shifted;
};

/// Buffers of one rank, with room for the largest batch.
class RowsOfRank {
 public:
  RowsOfRank(Collectives& collectives, const RowBatches& rows)
      : collectives_(collectives),
        rows_(rows),
        element_(info(rows.dtype).bytes),
        parts_(info(rows.kind).has_rows(Side::input) ? collectives.communicator().size() : 1) {}
  ~RowsOfRank() {
    if (stream_ != nullptr) device().destroy_stream(stream_);
  }
  RowsOfRank(const RowsOfRank&) = delete;
  RowsOfRank& operator=(const RowsOfRank&) = delete;

  bool make(Diagnostics& diagnostics) {
    const uint64_t count = parts_ * rows_.most_rows * rows_.hidden + 1,
                   rank = communicator().rank();
    const Bytes others = random_floats(count, element_, 1000 + rank);
    row_ = random_floats(rows_.hidden, element_, 7 + rank);
    for (std::unique_ptr<Memory>* memory : {&input_, &output_}) {
      *memory = device().allocate(count * element_, "rows", diagnostics);
      if (*memory == nullptr ||
          !collectives_.register_buffer((*memory)->data(), count * element_, diagnostics)) {
        return false;
      }
    }
    stream_ = device().create_stream(diagnostics);
    return stream_ != nullptr &&
           device().write(input_->data(), others.data(), others.size(), diagnostics);
  }

  /// The bits of the row in a batch. False: reported.
  bool reduce(uint64_t batch, const Form& form, const PlayCalls& play, Bytes& bits,
              Diagnostics& diagnostics) {
    const uint64_t shift = form.shifted ? element_ : 0;
    uint8_t* const from = input_->data() + shift;
    const uint64_t part = batch * row_.size(), place = (batch * 5 / 7) * row_.size();
    uint8_t* const own = from + (parts_ == 1 ? 0 : communicator().rank() * part);
    uint8_t* const to = form.in_place ? own : output_->data() + shift;
    bits.assign(row_.size(), 0xa5);
    const CollectiveCall call{.kind = rows_.kind,
                              .count = batch * rows_.hidden,
                              .dtype = rows_.dtype,
                              .input = from,
                              .output = to,
                              .registered = form.registered};
    const auto calls = [&](Diagnostics& problems) {
      return collectives_.call(call, stream_, problems);
    };
    bool done = device().write(to + place, bits.data(), bits.size(), diagnostics);
    for (uint64_t p = 0; p < parts_; ++p) {
      done = done && device().write(from + p * part + place, row_.data(), row_.size(), diagnostics);
    }
    return done && play(stream_, calls, diagnostics) &&
           communicator().synchronize(stream_, diagnostics) &&
           device().read(bits.data(), to + place, bits.size(), diagnostics);
  }

 private:
  Communicator& communicator() const { return collectives_.communicator(); }
  Device& device() const { return communicator().device(); }

  Collectives& collectives_;
  const RowBatches& rows_;
  const uint32_t element_;
  const uint64_t parts_;  ///< batches that a rank gives
  Bytes row_;
  std::unique_ptr<Memory> input_, output_;
  StreamHandle stream_ = nullptr;
};

}  // namespace

std::string check_rows(Collectives& collectives, const RowBatches& rows, const PlayCalls& play,
                       uint64_t& batches, std::vector<uint8_t>* row) {
  Diagnostics diagnostics;
  RowsOfRank own(collectives, rows);
  Bytes alone, bits;
  if (!own.make(diagnostics) || !own.reduce(1, Form(0), play, alone, diagnostics)) {
    return text(diagnostics);
  }
  if (row != nullptr) *row = alone;
  const bool gets_it =
      !info(rows.kind).side(Side::output).only_at_root || collectives.communicator().rank() == 0;
  uint64_t number = 0;
  std::string fault;  // of the first batch that has one; the others are made with all ranks
  for (uint64_t batch = 1; batch <= rows.most_rows; batch += rows.step) {
    const Form form(number++);
    if (!own.reduce(batch, form, play, bits, diagnostics)) return text(diagnostics);
    ++batches;
    const auto [a, b] = std::ranges::mismatch(alone, bits);
    if (a == alone.end() || !gets_it || !fault.empty()) continue;
    fault = fmt::format("{}, {} rows{}{}{}: byte {} of the row is {:02x}, and {:02x} alone",
                        info(rows.dtype).name, batch, form.in_place ? ", in place" : "",
                        form.registered ? ", registered" : "", form.shifted ? ", shifted" : "",
                        a - alone.begin(), *b, *a);
  }
  return fault;
}

}  // namespace mscclc::testing
