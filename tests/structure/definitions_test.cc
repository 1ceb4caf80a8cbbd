// One name, one thing: two types of one name in two files are undefined behaviour that no compiler
// reports (the one definition rule).
#include "tests/structure/definitions.h"

#include <catch2/catch.hpp>
#include <cctype>
#include <stdexcept>
#include <string_view>

#include "tests/structure/sources.h"

namespace mscclc::structure {
namespace {

using Doubles = std::map<std::string, std::set<std::string>>;

std::string names_in(const std::string& source) {
  std::string names;
  for (const Definition& one : definitions(source)) {
    names += (names.empty() ? "" : " ") + one.name;
  }
  return names;
}

TEST_CASE("no name is defined in two files") {
  const auto texts = sources();
  REQUIRE(texts.size() > 600);
  for (const auto& [name, paths] : doubles(texts)) {
    std::string all;
    for (const std::string& path : paths) all += " " + path;
    FAIL_CHECK(name << " is defined in" << all << ": rename one, or give it a namespace");
  }
}

/// How many types of this name a text defines, whatever they are members of.
long types_named(std::string_view name, std::string_view text) {
  long count = 0;
  for (const std::string_view keyword : {"struct ", "class ", "enum "}) {
    for (size_t at = text.find(keyword); at != text.npos; at = text.find(keyword, at + 1)) {
      if (at > 0 && std::isalnum(static_cast<unsigned char>(text[at - 1])) != 0) continue;
      const size_t end = text.find_first_of(";,()<>{}", at);
      if (end == text.npos || text[end] != '{') continue;
      std::string_view type = text.substr(at + keyword.size(), end - at - keyword.size());
      type = type.substr(0, type.find_first_of(" \n"));
      const size_t scope = type.rfind("::");
      if (scope != type.npos) type.remove_prefix(scope + 2);
      count += type == name ? 1 : 0;
    }
  }
  return count;
}

TEST_CASE("the shortest names of types are given once") {
  const auto texts = sources();
  for (const char* name : {"Lane", "Place", "Entry", "Call", "Group", "Turn"}) {
    long count = 0;
    for (const auto& [path, text] : texts) count += types_named(name, text);
    INFO(name);
    CHECK(count <= 1);
  }
}

TEST_CASE("types of a name are counted") {
  CHECK(types_named("Cell", "struct Cell { }; class Cell final : A::B {};") == 2);
  CHECK(types_named("Cell", "struct Op::Cell {\n};") == 1);
  CHECK(types_named("Cell", "struct Cell; f(struct Cell& c) {} struct Cells {};") == 0);
}

TEST_CASE("two types of one name are found") {
  const std::string touch = "namespace mscclc {\nstruct Touch { int op; };\n}\n";
  CHECK(
      doubles({{"a.h", touch}, {"b.h", touch}, {"c.h", "namespace mscclc { struct Other {}; }"}}) ==
      Doubles{{"mscclc::Touch", {"a.h", "b.h"}}});
}

TEST_CASE("two functions of one name and one list of types are found") {
  const std::string a = "namespace mscclc { int hash(const Plan& plan, int n = 3) { return n; } }";
  const std::string b = "namespace mscclc { long hash(const Plan& p, int) { return 1; } }";
  const std::string overload = "namespace mscclc { int hash(const Plan& plan) { return 0; } }";
  CHECK(doubles({{"a.cc", a}, {"b.cc", b}, {"c.cc", overload}}) ==
        Doubles{{"mscclc::hash(const Plan&,int)", {"a.cc", "b.cc"}}});
}

TEST_CASE("what other files cannot see is no double") {
  const std::string hidden =
      "namespace mscclc {\nnamespace {\nstruct Touch {};\nvoid f() {}\n}\n}\n";
  const std::string internal =
      "namespace mscclc { static int f(int) { return 0; } "
      "constexpr int kN = 3; const char kText[] = {'a', '\\''}; }";
  const std::string declared = "namespace mscclc { struct Touch; enum class E : int; int f(int); }";
  for (const std::string& text : {hidden, internal, declared}) {
    INFO(text);
    CHECK(doubles({{"a.cc", text}, {"b.cc", text}}).empty());
  }
}

TEST_CASE("of a file and its twin without a GPU the build takes one") {
  const std::string text = "namespace mscclc { bool has_gpu() { return true; } }";
  CHECK(doubles({{"open.cc", text}, {"open_without_gpu.cc", text}}).empty());
  CHECK(doubles({{"open.cc", text}, {"open_on_host.cc", text}}).empty());
  CHECK(doubles({{"executor/cuda/device/access.cuh", text}, {"executor/cuda/host/access.h", text}})
            .empty());
  CHECK(doubles({{"open.cc", text}, {"close.cc", text}}).size() == 1);
}

TEST_CASE("definitions are read as C++ has them") {
  CHECK(names_in("namespace a::b { enum class E : char { x, y }; union U { int i; }; }") ==
        "a::b::E a::b::U");
  CHECK(names_in("class [[nodiscard]] A final : public B<int> { void f() {} };") == "A");
  CHECK(names_in("struct alignas(16) A { int x; } a;") == "A");
  CHECK(names_in("template <class T = std::vector<int>> struct S { T t; };") == "S");
  CHECK(names_in("template <> struct S<int, 2> { };") == "S<int,2>");
  CHECK(names_in("A::A(int x) : a_(x), b_{x, 1} { f(); }\nA::~A() {}") == "A::A(int) A::~A()");
  CHECK(names_in("bool operator==(const A& a, const A& b) { return true; }") ==
        "operator==(const A&,const A&)");
  CHECK(names_in("std::map<int, int> f(std::span<const int> x, void (*g)(int)) { return {}; }") ==
        "f(std::span<const int>,void(*g)(int))");
  CHECK(names_in("auto f() -> int { return 1; } void g() noexcept(true) {}") == "f() g()");
  CHECK(names_in("__global__ void __launch_bounds__(1024) k(const int n) {}") == "k(const int)");
  CHECK(names_in("inline constexpr int kA = 3; inline std::atomic<int> n{0}; int plain = 1;") ==
        "kA n plain");
  CHECK(names_in("extern \"C\" { int f() { return 0; } }") == "f()");
  CHECK(names_in("#define X {\n// }\n/* { */ const char* s() { return R\"x(}\")x\"; }") == "s()");
  CHECK(names_in(
            "TEST_CASE(\"{\") { int x = 1'000; }\nstatic_assert(sizeof(A) <= 4);\nvoid f() {}") ==
        "f()");
  CHECK(names_in("using A = int; typedef int B; template class S<int>; concept C = true;").empty());
}

TEST_CASE("what cannot be read is an error, not skipped") {
  CHECK_THROWS_AS(definitions("namespace a {\nvoid f() {\n"), std::runtime_error);
  CHECK_THROWS_AS(definitions("void f() {} }"), std::runtime_error);
  for (const char* cut_off : {"bool operator", "A::A() : a_", "int x =", "alignas", "enum class"}) {
    INFO(cut_off);
    CHECK_THROWS_AS(definitions(cut_off), std::runtime_error);
  }
  CHECK_THROWS_WITH(doubles({{"x.cc", "struct A {"}}), Catch::Contains("x.cc, line 1"));
}

}  // namespace
}  // namespace mscclc::structure
