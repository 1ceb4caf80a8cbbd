// What ranks say as they meet for another communicator, and lie: the error names the rank that did.
#include "runtime/doors/nccl/comm/meet.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <string_view>

namespace mscclc::nccl {
namespace {

using Messages = std::vector<std::vector<uint8_t>>;

/// Rank 0; the others give what the test says.
class Scripted final : public Bootstrap {
 public:
  explicit Scripted(Messages others) : others_(std::move(others)) {}
  uint32_t rank() const override { return 0; }
  uint32_t size() const override { return static_cast<uint32_t>(others_.size()) + 1; }
  bool all_gather(std::span<const uint8_t> own, std::string_view, Messages& all,
                  Diagnostics&) override {
    all = others_;
    all.insert(all.begin(), {own.begin(), own.end()});
    return true;
  }
  void on_failure(std::function<void(const std::string&)>) override {}
  void fail(const std::string&) override {}

 private:
  const Messages others_;
};

std::string text(const Diagnostics& diagnostics) {
  return render_text(diagnostics, Sources(), 100);
}

std::vector<uint8_t> wish(int color, int key) {
  std::vector<uint8_t> bytes(sizeof color + sizeof key);
  std::memcpy(bytes.data(), &color, sizeof color);
  std::memcpy(bytes.data() + sizeof color, &key, sizeof key);
  return bytes;
}

TEST_CASE("the ranks of one color, and one whose message has none") {
  Diagnostics diagnostics;
  Family family;
  Scripted good({wish(7, 1), wish(8, 0), wish(7, -5)});
  CHECK(find_family(good, 7, 1, family, diagnostics));
  CHECK(family.ranks == std::vector<uint32_t>{3, 0, 1});
  CHECK(family.rank == 1);
  for (const size_t bytes : {0, 7, 9}) {
    Diagnostics problems;
    Scripted bad({wish(7, 1), std::vector<uint8_t>(bytes)});
    CHECK(!find_family(bad, 7, 0, family, problems));
    CHECK(text(problems) == "error: the message of rank 2 has no color\n");
  }
}

std::string said_of_id(const std::vector<uint8_t>& id) {
  Diagnostics diagnostics;
  Scripted parent({id});
  Comm child;
  CHECK(meet_through(parent, {.ranks = {1, 0}, .rank = 1}, child, diagnostics) == nullptr);
  return text(diagnostics);
}

TEST_CASE("an error for an invalid id names the rank that gave it") {
  CHECK(said_of_id({}) == "error: rank 1 of the parent can serve no id\n");
  CHECK(said_of_id({1, 2, 3}) == "error: rank 1 of the parent can serve no id\n");
  CHECK(said_of_id(std::vector<uint8_t>(sizeof(ncclUniqueId), 0x1b)) ==
        "error: the id of rank 1 of the parent: this is not a unique id: it is too long\n");
  std::vector<uint8_t> why(sizeof(ncclUniqueId));
  for (const char c : std::string_view("no room")) why.push_back(static_cast<uint8_t>(c));
  CHECK(said_of_id(why) == "error: rank 1 of the parent can serve no id: no room\n");
}

}  // namespace
}  // namespace mscclc::nccl
