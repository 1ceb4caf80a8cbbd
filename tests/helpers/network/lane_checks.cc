#include "tests/helpers/network/lane_checks.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <new>
#include <thread>

#include "executor/shared_atomics.h"

namespace mscclc::net::testing {

LaneMemory::LaneMemory(std::chrono::milliseconds patience)
    : patience(patience), far_reports(patience), near_reports(patience) {
  id = exposed->add(memory, data(), kWorldBytes);
}

uint64_t LaneMemory::word(uint64_t offset) const { return load_acquire<uint64_t>(data() + offset); }

void LaneMemory::await_count(uint64_t offset, uint64_t value) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (word(offset) < value) {
    REQUIRE(near_reports.text() + far_reports.text() == "");
    REQUIRE(std::chrono::steady_clock::now() < until);
    std::this_thread::yield();
  }
}

std::string LaneMemory::text() const { return render_text(diagnostics, Sources(), 1000); }

void fill(uint8_t* data, size_t count, uint64_t seed) {
  for (size_t i = 0; i < count; ++i) data[i] = static_cast<uint8_t>((i + seed) * 2654435761u >> 16);
}

void check_counts(LaneMemory& to, Lane& lane,
                  const std::function<uint8_t*(uint64_t put, uint64_t offset)>& source) {
  uint64_t count = 0;
  for (const size_t bytes :
       {1, 8, 64, 65, 100, 4096, 65536, 262144, 262145, 1 << 20, (4 << 20) + 13}) {
    for (const uint64_t offset : {64, 100, 262144 - 8, 300'000}) {
      uint8_t* const data = source(count, offset);
      fill(data, bytes, count);
      INFO("put " << count + 1 << ": " << bytes << " bytes; " << to.text());
      REQUIRE(lane.put(to.at(offset), data, bytes, to.diagnostics));
      REQUIRE(lane.signal(to.at(0), ++count, to.diagnostics));
      uint64_t own = 0;
      REQUIRE(lane.complete(&own, count, to.diagnostics));
      to.await_count(0, count);
      CHECK(to.word(0) == count);
      CHECK(std::equal(data, data + bytes, to.data() + offset));
      while (load_acquire<uint64_t>(&own) != count) std::this_thread::yield();
    }
  }
  CHECK(lane.flush(to.diagnostics));
}

void check_refused_places(LaneMemory& to, Lane& lane) {
  class Other final : public Memory {
  } other;
  const uint64_t value = 1;
  CHECK(!lane.put(to.at(kWorldBytes - 7), &value, 8, to.diagnostics));
  CHECK(!lane.signal(to.at(kWorldBytes + 8), 1, to.diagnostics));
  CHECK(!lane.put({&other, 0}, &value, 8, to.diagnostics));
  CHECK(to.text() ==
        "error: 8 bytes at byte 8388601 of a region of rank 3 are not for its lane\n"
        "error: 8 bytes at byte 8388616 of a region of rank 3 are not for its lane\n"
        "error: 8 bytes at byte 0 of a region of rank 3 are not for its lane\n");
  CHECK(lane.flush(to.diagnostics));
}

void check_needs_no_more(LaneMemory& to, Lane& lane, const uint8_t* source) {
  uint64_t own = 0;
  for (int i = 0; i < 10; ++i) {
    CHECK(lane.put(to.at(0), source, kWorldBytes, to.diagnostics));
    CHECK(lane.signal(to.at(0), 1, to.diagnostics));
  }
  CHECK(lane.complete(&own, 2, to.diagnostics));
  CHECK(lane.flush(to.diagnostics));
  CHECK(own == 2);
  CHECK(to.text() == "");
  CHECK(to.near_reports.text() + to.far_reports.text() == "");
  CHECK(to.word(0) == 0);
}

LaneNoted LaneMemory::take_notes() {
  return [this](const LaneNote& note) -> std::string {
    if (note[7] != ~note[0]) return "a note that is not whole";
    if (lacks_memory) throw std::bad_alloc();
    noted = note[0];
    return refuses_notes ? "a note that is refused" : "";
  };
}

void check_notes(LaneMemory& to, Lane& lane, uint8_t* source) {
  const auto end = std::chrono::steady_clock::now() + to.patience;
  const auto await_lane_room = [&] {
    while (lane.room() == 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  };
  const auto note = [&](uint64_t number) {
    return lane.note({number, 0, 0, 0, 0, 0, 0, ~number}, to.diagnostics);
  };
  for (uint64_t i = 1; i <= 50; ++i) {
    CHECK(note(i));
    await_lane_room();
    CHECK(lane.put(to.at(64), source, i % 2 == 0 ? 8 : 300'000, to.diagnostics));
    await_lane_room();
    CHECK(lane.signal(to.at(0), i, to.diagnostics));
    to.await_count(0, i);
    CHECK(to.noted == i);
  }
  const uint64_t before = to.word(64);
  CHECK(lane.flush(to.diagnostics));
  uint64_t own = 0;  // until then `source` is the lane's, whatever has come
  CHECK(lane.complete(&own, 1, to.diagnostics));
  while (load_acquire<uint64_t>(&own) != 1) std::this_thread::yield();
  to.refuses_notes = true;
  fill(source, 300'000, 77);
  Diagnostics refused;
  bool goes_on = lane.note({51, 0, 0, 0, 0, 0, 0, ~uint64_t{51}}, refused);
  for (int i = 0; i < 100 && goes_on; ++i) {
    await_lane_room();
    goes_on = lane.put(to.at(64), source, 300'000, refused) && lane.signal(to.at(0), 99, refused);
  }
  CHECK(to.far_reports.wait().find("a note that is refused") != std::string::npos);
  CHECK(to.word(0) == 50);
  CHECK(to.word(64) == before);
}

void check_lack_of_memory(LaneMemory& to, Lane& lane) {
  to.lacks_memory = true;
  to.far_reports.lack_memory(2);
  to.near_reports.lack_memory(2);
  Diagnostics refused;
  (void)lane.note({1, 0, 0, 0, 0, 0, 0, ~uint64_t{1}}, refused);
  const std::string lack = "has ended: there is not enough memory";
  CHECK(to.far_reports.wait().find("the lane of rank 5 " + lack + " here") != std::string::npos);
  // The near end hears why, or that the lane has ended, and finds no memory for that.
  CHECK(to.near_reports.wait().find("the lane to rank 3 " + lack) != std::string::npos);
  CHECK(!lane.signal(to.at(0), 1, refused));
  CHECK(to.word(0) == 0);
}

}  // namespace mscclc::net::testing
