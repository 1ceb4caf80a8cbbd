// A call is described three times on its way from a door to the kernel: what a caller asks for
// (CollectiveCall), what of it all ranks know and a plan is chosen by (LibraryCall), and what the
// plan's steps do (Call, which a LaunchPlan is). Doors ask the table of collectives about kinds.
// The numbers are printed.
#include "tests/structure/call_structs.h"

#include <catch2/catch.hpp>
#include <cstdio>

#include "tests/structure/sources.h"

namespace mscclc::structure {
namespace {

/// What a call comes through. The C header is left out: its structs are the public interface.
std::map<std::string, std::string> sources_on_the_way() {
  std::map<std::string, std::string> on_the_way;
  for (const auto& [path, text] : sources()) {
    bool passes = path == "executor/call.h" || path == "executor/lower.h" ||
                  path == "executor/launch.h" || path.starts_with("plans/format/");
    for (const char* room : {"api", "choice", "core", "devices", "doors", "support"}) {
      passes |= path.starts_with(std::string("runtime/") + room + "/");
    }
    const bool test = path.find("_test.") != path.npos;
    if (passes && !test && path != "runtime/doors/c/mscclc.h") on_the_way[path] = text;
  }
  return on_the_way;
}

std::vector<std::string> names(const std::vector<Found>& found) {
  std::vector<std::string> names;
  for (const Found& one : found) names.push_back(one.name);
  return names;
}

void print(const char* what, const std::vector<Found>& found) {
  std::printf("%s %zu\n", what, found.size());
  for (const Found& one : found) {
    std::printf("  %s (%s:%zu)\n", one.name.c_str(), one.path.c_str(), one.line);
  }
}

/// Records of calls: numbers that leave the process, laid out for where they go.
const std::vector<std::string> kRecords = {
    "CallRecord",  // 64 bytes of memory that ranks share, or of a note on a lane
    "FlightCall",  // read from words that another thread writes, for a file
};

TEST_CASE("three structs describe a call from a door to the kernel") {
  const CallStructs found = call_structs(sources_on_the_way());
  print("call structs", found.anew);
  print("derived from these", found.derived);
  std::vector<std::string> described = names(found.anew);
  for (const std::string& record : kRecords) {
    INFO(record << " is no such struct any more: take it off the list");
    CHECK(std::erase(described, record) == 1);
  }
  CHECK(described == std::vector<std::string>{"Call", "LibraryCall", "CollectiveCall"});
}

TEST_CASE("no door has cases for kinds of collectives") {
  std::map<std::string, std::string> doors;
  for (const auto& [path, text] : sources()) {
    if (path.starts_with("runtime/doors/")) doors[path] = text;
  }
  REQUIRE(doors.size() > 50);
  const std::vector<Found> switches = kind_switches(doors), compared = kind_comparisons(doors);
  print("door switches", switches);
  print("comparisons with a kind in doors", compared);
  CHECK(switches.empty());
  CHECK(compared.empty());
}

TEST_CASE("a struct with a size, a type and a reduction describes a call") {
  const auto found = [](const std::string& text) {
    return names(call_structs({{"a.h", text}}).anew);
  };
  using Names = std::vector<std::string>;
  CHECK(found("struct A { uint64_t bytes = 0; std::optional<Dtype> d = {}; ReduceOp op; };") ==
        Names{"A"});
  CHECK(found("class A final : public B<int, 3> { public: size_t count{3}, n; private: "
              "ncclDataType_t type; ncclRedOp_t op = f(1); void g(int a); };") == Names{"A"});
  CHECK(found("struct A { struct B { uint64_t bytes; Dtype d; ReduceOp op; }; B b; };") ==
        Names{"B"});
  CHECK(found("struct A { uint64_t bytes; Dtype d; struct B { ReduceOp op; }; };").empty());
  CHECK(found("struct A { uint64_t bytes; void f(Dtype d, ReduceOp op) { int count; } };").empty());
  CHECK(found("struct A { Call call; uint64_t bytes; using T = Dtype; static ReduceOp op; };")
            .empty());
  CHECK(found("struct A { uint64_t bytes = 0; uint8_t dtype = f(1), reduce = 0, n = 0; };") ==
        Names{"A"});
  CHECK(found("struct CallKey { uint64_t bytes; Dtype d; ReduceOp op; }; struct B; struct C* c;")
            .empty());
}

TEST_CASE("structs that derive from such a struct are found") {
  const CallStructs found = call_structs({
      {"a.h", "struct A { uint64_t bytes; Dtype d; ReduceOp op; };"},
      {"b.h", "struct B final : C { int n; }; struct C : public n::A { const A* like; };"},
      {"c.h", "struct D : A, E { Dtype other; }; struct F : G { Dtype d; }; struct H { A a; };"},
  });
  CHECK(names(found.anew) == std::vector<std::string>{"A", "D"});
  CHECK(names(found.derived) == std::vector<std::string>{"C", "B"});
}

TEST_CASE("comparisons with kinds are found") {
  const auto found = [](const std::string& text) {
    return kind_comparisons({{"a.cc", text}}).size();
  };
  CHECK(found("if (k == CollectiveKind::gather || n::CollectiveKind::scatter != k) f();") == 2);
  CHECK(found("return k != MSCCLC_ALLREDUCE;") == 1);
  CHECK(found("k = CollectiveKind::gather; f(CollectiveKind::scatter, a == b);") == 0);
  CHECK(found("if (k >= MSCCLC_ALLREDUCE && k != CollectiveKind::none) f();") == 0);
  CHECK(found("static_assert(MSCCLC_ALLREDUCE == int(CollectiveKind::allreduce));") == 0);
}

TEST_CASE("a switch over kinds is found") {
  const auto found = [](const std::string& text) { return kind_switches({{"a.cc", text}}).size(); };
  CHECK(found("int f() { switch (k) { case CollectiveKind::gather: return 1; } }") == 1);
  CHECK(found("int f() { switch (g(k)) { case 1: case MSCCLC_ALLREDUCE: return 1; } }") == 1);
  CHECK(found("int f() { switch (k) { case CallKind::send: { switch (j) { case A::alltoallv: } } "
              "} }") == 2);
  CHECK(found("int f() { switch (k) { case Stage::ready: return Kind::gather; default:; } }") == 0);
}

}  // namespace
}  // namespace mscclc::structure
