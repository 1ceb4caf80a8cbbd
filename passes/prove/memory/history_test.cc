// What stays on record of the accesses to a chunk.
#include "passes/prove/memory/history.h"

#include <catch2/catch.hpp>

namespace mscclc::proof {
namespace {

Record store(uint32_t process, uint32_t time, uint64_t bits = 0, const Extent& extent = {}) {
  return {.event = {process, time, 0, 0}, .extent = extent, .write = true, .bits = bits};
}

Record load(uint32_t process, uint32_t time, const Extent& extent = {}) {
  return {.event = {process, time, 0, 0}, .extent = extent};
}

/// Times of a list's records, newest first.
std::vector<uint32_t> times(const History& history, uint32_t list) {
  std::vector<uint32_t> found;
  history.each_of(list, [&](uint32_t i) { found.push_back(history.record(i).event.time); });
  return found;
}

TEST_CASE("a store takes the place of what it covers") {
  History history(1);
  const Extent half{.way = 1, .piece = 0};
  history.add_store(0, store(0, 1));
  history.add_load(0, load(1, 2), [](const Record&) { return false; });
  history.add_store(0, store(0, 3, 0, half));  // covers neither
  CHECK(times(history, history.stores(0)) == std::vector<uint32_t>{3, 1});
  CHECK(times(history, history.loads(0)) == std::vector<uint32_t>{2});
  history.add_store(0, store(0, 4));
  CHECK(times(history, history.stores(0)) == std::vector<uint32_t>{4});
  CHECK(history.loads(0) == kNone);
  CHECK(last_store(history, 0, {}).time == 4);
}

TEST_CASE("what is pinned stays, and what a store of known bits has covered lies beneath it") {
  History history(1);
  history.add_store(0, store(0, 1));
  history.add_store(0, store(0, 2, 7));
  CHECK(times(history, history.record(history.stores(0)).beneath) == std::vector<uint32_t>{1});
  history.pin(history.stores(0), true);
  history.add_store(0, store(1, 3, 7));
  CHECK(times(history, history.stores(0)) == std::vector<uint32_t>{3, 2});
}

TEST_CASE("a newer load does away with those that it stands for") {
  for (const bool stands : {false, true}) {
    History history(1);
    history.add_load(0, load(0, 1), [](const Record&) { return false; });
    history.add_load(0, load(0, 2), [&](const Record&) { return stands; });
    history.add_load(0, load(1, 3), [](const Record&) { return true; });  // of another process
    CHECK(times(history, history.loads(0)) ==
          (stands ? std::vector<uint32_t>{3, 2} : std::vector<uint32_t>{3, 2, 1}));
  }
}

TEST_CASE("the caller's store is renewed while nothing else has been done") {
  History history(1);
  CHECK_FALSE(history.renew(0, {0, 1, kNone, 0}));
  history.add_store(0, store(0, 1));
  CHECK(history.renew(0, {0, 1, kNone, 3}));
  CHECK(history.record(history.stores(0)).event.call == 3);
  CHECK_FALSE(history.renew(0, {1, 1, kNone, 0}));
  history.add_load(0, load(0, 2), [](const Record&) { return false; });
  CHECK_FALSE(history.renew(0, {0, 1, kNone, 4}));
}

}  // namespace
}  // namespace mscclc::proof
