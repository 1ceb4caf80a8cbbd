// How large the tree is, and how much of it is state of a whole program. What a pass, a kind of
// step, an op and a packet format cost is counted by tests/toys.sh.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <regex>
#include <set>
#include <stdexcept>

#include "tests/structure/globals.h"
#include "tests/structure/sources.h"

namespace mscclc::structure {
namespace {

// Today's figures, rounded up. The aims of lines are 115,000 and 230,000.
constexpr size_t kProductLines = 184'910;  // of C++ and CUDA that is no test
constexpr size_t kAllLines = 310'260;      // of C++ and CUDA
constexpr size_t kGlobals = 5;             // of what is no test
constexpr size_t kProcessWide = 35;        // objects that a process has one of, by process_wide()

bool is_product(const std::string& path) {
  return !path.starts_with("tests/") && path.find("_test.") == path.npos &&
         path.find("/testing/") == path.npos && path.find("_tests/") == path.npos;
}

std::vector<std::string> names_of(std::string_view source) {
  std::vector<std::string> names;
  for (const MutableGlobal& one : mutable_globals(source)) names.push_back(one.name);
  return names;
}

TEST_CASE("the tree grows no larger") {
  size_t product = 0, all = 0;
  for (const auto& [path, text] : sources()) {
    const auto lines = static_cast<size_t>(std::ranges::count(text, '\n'));
    all += lines;
    if (is_product(path)) product += lines;
  }
  std::printf("Lines of C++ and CUDA: %zu, with tests %zu\n", product, all);
  REQUIRE(product > 50'000);
  CHECK(product <= kProductLines);
  CHECK(all <= kAllLines);
}

TEST_CASE("hardly any state is a whole program's") {
  size_t count = 0;
  for (const auto& [path, text] : sources()) {
    if (!is_product(path)) continue;
    try {
      for (const MutableGlobal& one : mutable_globals(text)) {
        ++count;
        std::printf("%s:%zu: %s\n", path.c_str(), one.line, one.name.c_str());
      }
    } catch (const std::runtime_error& error) {
      FAIL(path << ", " << error.what());
    }
  }
  std::printf("Mutable globals: %zu\n", count);
  CHECK(count <= kGlobals);
}

/// The types of which a source asks for the one of the process (per_process.h).
std::set<std::string> process_wide(const std::string& source) {
  static const std::regex kAsks(R"(\b(?:process_wide|kept_over_forks)<(\w+)>\(\))");
  std::set<std::string> types;
  for (std::sregex_iterator one(source.begin(), source.end(), kAsks), end; one != end; ++one) {
    types.insert((*one)[1]);
  }
  return types;
}

TEST_CASE("few things are made once for a process") {
  size_t count = 0;
  for (const auto& [path, text] : sources()) {
    if (!is_product(path)) continue;
    for (const std::string& type : process_wide(text)) {
      ++count;
      std::printf("%s: %s\n", path.c_str(), type.c_str());
    }
  }
  std::printf("Objects of a process: %zu\n", count);
  REQUIRE(count > 10);
  CHECK(count <= kProcessWide);
}

TEST_CASE("mutable globals are found") {
  CHECK(names_of(R"(
int a; static std::map<int, std::string> b; const char* c = nullptr; std::atomic<int> d{3};
namespace n { namespace { thread_local Fiber* e = nullptr; } int f[3] = {1, 2, 3}; }
void g() { static Gpu gpu; static int calls = 0; static std::once_flag once; }
struct S { inline static int shared = 3; void h() { static std::vector<int> seen{1}; } };
int S::other = 3;
void i() { static T* const made = new T; static T& same = *new T; static const T* const t = get(); }
)") == std::vector<std::string>{"a", "b", "c", "d", "e", "f", "gpu", "calls", "once", "shared",
                                "seen", "other", "made", "same"});
}

TEST_CASE("what cannot change, or is not there, is no mutable global") {
  CHECK(names_of(R"(
extern int a; const int b = 3; constexpr int c[] = {1, 2}; const char* const d = ""; using E = int;
void f(int a, int b = 3); int g() { int local = 3; return local; } enum class H { i, j };
template <class T> constexpr bool kTrue = true; class K; struct L { int m; static int n; static int o(); };
void p() { static const int q = 3; for (int r = 0; r < 3; ++r) s(r); if (t < u) v = w; }
L::L() : m(3) {} bool operator==(L a, L b) { return true; }
extern "C" { void x(); }
)")
            .empty());
}

}  // namespace
}  // namespace mscclc::structure
