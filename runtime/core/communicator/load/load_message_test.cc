// What ranks say of the plan that they load, and how they differ.
#include "runtime/core/communicator/load/load_message.h"

#include <catch2/catch.hpp>

namespace mscclc {
namespace {

const std::string kHash(64, 'a');

LoadMessage sample() {
  return {.call = "an allreduce", .hash = kHash, .max_bytes = 1 << 20, .element = 4};
}

std::vector<uint8_t> encoded(const LoadMessage& loaded) {
  std::vector<uint8_t> message;
  loaded.encode(message);
  return message;
}

/// Code of the first error of ranks that load these; "": they load the same.
std::string difference(const LoadMessage& first, const LoadMessage& other) {
  Diagnostics diagnostics;
  const bool same =
      same_loads({encoded(first), encoded(first), encoded(other)}, kHash.size(), diagnostics);
  CHECK(same != diagnostics.has_errors());
  return same ? "" : diagnostics.all().at(0).code;
}

TEST_CASE("what is read is what was written, and what follows it is left") {
  LoadMessage loaded = sample();
  const std::vector<uint8_t> ticket = {1, 2, 3};
  loaded.zero_copy = true;
  loaded.board = ticket;
  std::vector<uint8_t> message = encoded(loaded);
  message.push_back(77);
  ByteReader reader(message);
  LoadMessage read;
  Diagnostics diagnostics;
  REQUIRE(decode(reader, kHash.size(), read, diagnostics));
  CHECK(read.is_like(loaded));
  CHECK(std::vector<uint8_t>(read.board.begin(), read.board.end()) == ticket);
  CHECK(reader.number<uint8_t>() == 77);
}

TEST_CASE("ranks must load alike; each has a ticket of its own") {
  LoadMessage other = sample();
  const std::vector<uint8_t> ticket = {9};
  other.board = ticket;
  CHECK(difference(sample(), other) == "");
  for (bool LoadMessage::*option : {&LoadMessage::in_turn, &LoadMessage::in_order}) {
    other.*option = true;
    CHECK(difference(sample(), other) == "options-differ");
    other.*option = false;
  }
  other.hash[3] = 'b';
  CHECK(difference(sample(), other) == "plan-differs");
  other.call = "a broadcast";
  CHECK(difference(sample(), other) == "call-differs");
}

TEST_CASE("a rank that loads a plan by itself has no call to name") {
  LoadMessage alone = sample();
  alone.call = "";
  Diagnostics first, second;
  CHECK_FALSE(same_loads({encoded(sample()), encoded(alone)}, kHash.size(), first));
  CHECK(first.all().at(0).message ==
        "ranks make different calls: rank 0 makes an allreduce; rank 1 loads a plan by itself");
  CHECK_FALSE(same_loads({encoded(alone), encoded(sample())}, kHash.size(), second));
  CHECK(second.all().at(0).message ==
        "ranks make different calls: rank 0 loads a plan by itself; rank 1 makes an allreduce");
}

TEST_CASE("a long call in words is cut off; calls that begin alike are alike") {
  LoadMessage longer = sample(), longest = sample();
  longer.call.assign(600, 'x');
  longest.call.assign(700, 'x');
  CHECK(difference(longer, longest) == "");
}

TEST_CASE("a message that is cut off anywhere is refused") {
  const std::vector<uint8_t> whole = encoded(sample());
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    const std::vector<uint8_t> cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(bytes));
    ByteReader reader(cut);
    LoadMessage read;
    Diagnostics diagnostics;
    CHECK_FALSE(decode(reader, kHash.size(), read, diagnostics));
    CHECK(diagnostics.all().at(0).code == "bad-message");
  }
}

}  // namespace
}  // namespace mscclc
