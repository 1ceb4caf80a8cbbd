// Plans with random damage are read or refused, never anything else; what is read is right in
// structure and survives being written again. With sanitizers the fuzzer of plans tries far more.
#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "ir/print/print.h"
#include "ir/support/read_file.h"
#include "ir/support/sanitized.h"
#include "ir/verify/verify.h"
#include "plans/format/plan_json.h"
#include "tests/helpers/plans/random_plan.h"
#include "tests/helpers/plans/rehash.h"

namespace mscclc {
namespace {

using OrderedJson = nlohmann::ordered_json;

const Target& host() { return builtin_targets().front(); }

class Damage {
 public:
  explicit Damage(uint64_t seed) : random_(seed) {}

  /// Changes one value somewhere in the document.
  void change(OrderedJson& document) {
    std::vector<OrderedJson*> all;
    collect(document, all);
    OrderedJson& victim = *all[pick(all.size())];
    switch (pick(4)) {
      case 0:
        victim = number();
        break;
      case 1:
        victim = *all[pick(all.size())];
        break;  // NOLINT: a copy, even of itself
      case 2:
        other_type(victim);
        break;
      default:
        shrink_or_grow(victim);
        break;
    }
  }

  /// Changes bytes of the text.
  void scramble(std::string& text) {
    for (size_t n = 1 + pick(3); n > 0; --n) {
      const size_t at = pick(text.size());
      switch (pick(3)) {
        case 0:
          text[at] = static_cast<char>(pick(256));
          break;
        case 1:
          text.erase(at, 1 + pick(8));
          break;
        default:
          text.insert(at, text.substr(pick(text.size()), pick(16)));
          break;
      }
    }
  }

 private:
  size_t pick(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }

  static void collect(OrderedJson& value, std::vector<OrderedJson*>& all) {
    all.push_back(&value);
    if (!value.is_structured()) return;
    for (OrderedJson& inner : value) collect(inner, all);
  }

  OrderedJson number() {
    const OrderedJson numbers[] = {0,
                                   1,
                                   2,
                                   7,
                                   255,
                                   65536,
                                   2147483647,
                                   -1,
                                   4294967295,
                                   4294967296,
                                   0x7fffffffffffffff,
                                   0xffffffffffffffff,
                                   -0x7fffffffffffffff,
                                   1.5,
                                   16};
    return numbers[pick(std::size(numbers))];
  }

  void other_type(OrderedJson& value) {
    const OrderedJson values[] = {nullptr,
                                  true,
                                  "s",
                                  "memory",
                                  "switch",
                                  "sum",
                                  "",
                                  OrderedJson::array(),
                                  OrderedJson::object(),
                                  OrderedJson::array({0}),
                                  OrderedJson::array({1, 2, 3})};
    value = values[pick(std::size(values))];
  }

  void shrink_or_grow(OrderedJson& value) {
    if (value.is_array() && !value.empty()) {
      const OrderedJson copy = value[pick(value.size())];
      if (pick(2) == 0) {
        value.erase(pick(value.size()));
      } else {
        value.insert(value.begin() + static_cast<ptrdiff_t>(pick(value.size() + 1)), copy);
      }
    } else if (value.is_object() && !value.empty()) {
      auto it = value.begin();
      std::advance(it, pick(value.size()));
      if (pick(2) == 0) {
        value.erase(it.key());
      } else {
        value["index"] = it.value();
      }
    } else if (value.is_number_unsigned()) {
      value = value.get<uint64_t>() + 1;
    }
  }

  std::mt19937_64 random_;
};

/// Reads what may be anything. Returns whether it was a plan.
bool read_anything(const std::string& text) {
  Diagnostics diagnostics;
  const auto program = read_plan(text, "plan.json", diagnostics);
  REQUIRE(program.has_value() != diagnostics.has_errors());
  if (!program) {
    REQUIRE(diagnostics.all().size() >= 1);
    return false;
  }
  REQUIRE(verify_structure(*program, diagnostics));
  const auto written = write_plan(*program, host(), diagnostics);
  REQUIRE(written);
  const auto again = read_plan(*written, "plan.json", diagnostics);
  INFO(render_text(diagnostics, Sources()));
  REQUIRE(again);
  REQUIRE(print_ir(*again) == print_ir(*program));
  return true;
}

/// Copies of each plan with changed values, and with changed bytes.
constexpr uint64_t kChanged = testing::if_sanitized(10, 40);
constexpr int kScrambled = testing::if_sanitized(4, 10);

std::vector<std::string> seeds() {
  std::vector<std::string> texts;
  for (const auto& entry : std::filesystem::directory_iterator("tests/mscclpp_plans")) {
    if (entry.path().extension() != ".json" || entry.file_size() > 12000) continue;
    texts.push_back(read_file(entry.path()).value());
  }
  std::sort(texts.begin(), texts.end());
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Diagnostics diagnostics;
    texts.push_back(*write_plan(testing::random_plan(seed), host(), diagnostics));
  }
  return texts;
}

}  // namespace

TEST_CASE("plans with changed values are read or refused") {
  size_t plans = 0, all = 0;
  for (const std::string& text : seeds()) {
    const OrderedJson right = OrderedJson::parse(text);
    for (uint64_t i = 0; i < kChanged; ++i) {
      INFO("plan " << all / kChanged << " damage " << i);
      Damage damage(all++);
      OrderedJson document = right;
      for (uint64_t n = 0; n <= i % 2; ++n) damage.change(document);
      plans += read_anything(testing::rehash(document.dump()));
    }
  }
  CHECK(plans > all / 50);  // some damage must get past the reader to its later steps
}

TEST_CASE("plans with changed bytes are read or refused") {
  uint64_t seed = 0;
  for (const std::string& text : seeds()) {
    for (int i = 0; i < kScrambled; ++i) {
      INFO("damage " << seed);
      Damage damage(seed++);
      std::string changed = text;
      damage.scramble(changed);
      read_anything(changed);
      read_anything(testing::rehash(changed));
    }
  }
}

}  // namespace mscclc
