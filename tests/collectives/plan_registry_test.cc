// Plans that are registered one by one: which goes first, adding and removing, selectors, paths.
#include "runtime/api/plan_registry.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>
#include <type_traits>

#include "compiler/compile.h"
#include "ir/program/program.h"
#include "ir/support/read_file.h"
#include "plans/format/plan_json.h"
#include "runtime/api/builtin_library.h"
#include "runtime/choice/overlap/measured.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/observe/log.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

constexpr uint32_t kPickingRanks = 2;

/// The JSON of an all-gather for two ranks with these `select` options; `blocks` makes it another.
std::string plan(const std::string& select, int blocks = 1) {
  std::string text = read_file("plans/allgather_direct.mscl").value();
  const size_t begin = text.find("\nselect"), end = text.find('\n', begin + 1);
  text.replace(begin, end - begin, select.empty() ? "" : "\nselect     " + select);
  Sources sources;
  Diagnostics diagnostics;
  const FileId file = sources.add("plan.mscl", text);
  FrontEndOptions front;
  front.defines = {{"R", "2"}, {"B", std::to_string(blocks)}, {"T", "64"}};
  const auto program = compile(sources, file, front, {}, diagnostics);
  INFO(render_text(diagnostics, sources));
  REQUIRE(program);
  const auto json = write_plan(*program, *find_target("sm_90", diagnostics), diagnostics);
  REQUIRE(json);
  return *json;
}

std::shared_ptr<PlanRegistry> registry(std::shared_ptr<PlanProvider> library = nullptr) {
  Diagnostics diagnostics;
  auto made = PlanRegistry::create({.library = std::move(library)}, diagnostics);
  INFO(testing::text(diagnostics));
  REQUIRE(made != nullptr);
  return made;
}

std::string add(PlanRegistry& registry, const std::string& json, const std::string& name) {
  Diagnostics diagnostics;
  const auto id = registry.register_plan(json, name, diagnostics);
  INFO(testing::text(diagnostics));
  REQUIRE(id);
  return *id;
}

PlanRequest request(uint64_t bytes) {
  return {.call = {CollectiveKind::allgather, kPickingRanks, bytes}};
}

std::string pick(PlanRegistry& registry, const PlanRequest& request) {
  Diagnostics diagnostics;
  const auto picked = registry.pick(request, nullptr, diagnostics);
  if (!diagnostics.all().empty()) return diagnostics.all()[0].message;
  return picked == nullptr ? "nothing" : picked->name;
}

std::string scratch_folder(const std::string& name) {
  const char* folder = std::getenv("TEST_TMPDIR");
  const std::string path = std::string(folder == nullptr ? "/tmp" : folder) + "/" + name;
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path;
}

/// Sets a variable while it lives.
class WithVariable {
 public:
  WithVariable(const char* name, const std::string& value) : name_(name) {
    setenv(name, value.c_str(), 1);
  }
  ~WithVariable() { unsetenv(name_); }

 private:
  const char* name_;
};

}  // namespace

// A choice can depend on nothing but what a request holds. A new member stops this from compiling:
// all ranks must have the same in it.
TEST_CASE("a request holds nothing of one rank alone") {
  const auto& [call, alignment, registered, architecture, multiprocessors, most_blocks, multicast,
               tag] = PlanRequest{};
  const auto& [kind, ranks, bytes, dtype, in_place, root, shift, accumulate, op, links, nodes,
               order, either_place, captured] = LibraryCall{};
  const auto no_pointers = [](const auto&... members) {
    return (!std::is_pointer_v<std::remove_cvref_t<decltype(members)>> && ...);
  };
  CHECK(no_pointers(alignment, registered, architecture, multiprocessors, most_blocks, multicast,
                    tag));
  CHECK(no_pointers(kind, ranks, bytes, dtype, in_place, root, shift, accumulate, op, links, nodes,
                    order, either_place, captured));
  CHECK(call.nodes == 1);
}

TEST_CASE("the more specific plan goes first") {
  const auto all = registry();
  add(*all, plan(""), "any");
  CHECK(pick(*all, request(1000)) == "any");
  add(*all, plan("sizes: 0..1MiB"), "small");
  CHECK(pick(*all, request(1000)) == "small");
  CHECK(pick(*all, request(1 << 20)) == "any");
  add(*all, plan("sizes: 0..64KiB"), "smaller");
  add(*all, plan("sizes: 0..64KiB, dtypes: [f16, bf16]"), "halves");
  CHECK(pick(*all, request(1000)) == "smaller");
  PlanRequest half = request(1000);
  half.call.dtype = Dtype::f16;
  CHECK(pick(*all, half) == "halves");
  add(*all, plan("nodes: 1"), "node");
  CHECK(pick(*all, request(1000)) == "node");
  add(*all, plan("tags: [decode]"), "tagged");
  CHECK(pick(*all, request(1000)) == "node");
  PlanRequest decode = request(1000);
  decode.tag = "decode";
  CHECK(pick(*all, decode) == "tagged");
  decode.tag = "prefill";
  CHECK(pick(*all, decode) == "node");
  add(*all, plan("priority: 1"), "first");
  CHECK(pick(*all, decode) == "first");
  add(*all, plan("priority: -9223372036854775808", 2), "last");
  CHECK(all->plans().back().plan.name == "last");
}

TEST_CASE("every plan that is passed over has its reason") {
  const auto all = registry();
  add(*all, plan("sizes: 4KiB..1MiB"), "middle");
  add(*all, plan("dtypes: [f16]"), "halves");
  add(*all, plan("priority: 1"), "first");
  add(*all, plan("nodes: 2..4, priority: 2"), "far");
  add(*all, plan("tags: [decode], priority: 3"), "tagged");
  Diagnostics diagnostics;
  std::vector<PassedOver> over;
  const auto picked = all->pick(request(1000), &over, diagnostics);
  REQUIRE(picked != nullptr);
  CHECK(picked->name == "first");
  CHECK(picked->why == "the first registered plan that serves it, of priority 1");
  std::string text;
  for (const PassedOver& p : over) text += fmt::format("{}: {}\n", p.name, p.why);
  CHECK(text ==
        "tagged: the call has none of its tags\n"
        "far: it is for 2 to 3 nodes\n"
        "middle: it is for 4096 to 1048575 bytes\n"
        "halves: it is not for f32\n");
  over.clear();
  LibraryCall other{.kind = CollectiveKind::allgather, .ranks = 4};
  CHECK(all->pick({.call = other}, &over, diagnostics) == nullptr);
  CHECK(over.size() == 5);
  CHECK(over[0].why == "it is for 2 ranks");
  over.clear();
  add(*all, plan("priority: 9", 3), "wide");
  PlanRequest small_gpu = request(5000);
  small_gpu.multiprocessors = 2;
  CHECK(all->pick(small_gpu, &over, diagnostics)->name == "first");
  CHECK(over[0].why == "its 3 thread blocks do not fit on 2 multiprocessors at once");
}

// Ranks register the same plans, each in an order of its own, and some in several threads; nothing
// of what is local to them enters a request.
TEST_CASE("ranks with the same plans pick the same, whatever the order they came in") {
  std::mt19937_64 random(20);
  std::vector<std::string> plans;
  for (int i = 0; i < 12; ++i) {
    const uint64_t least = random() % 5000, most = least + 1 + random() % 5000;
    const char* dtypes[] = {"", ", dtypes: [f32]", ", dtypes: [f16, f32]"};
    const char* more[] = {"", ", tags: [a]", ", tags: [a, b]", ", nodes: 1", ", priority: 1"};
    plans.push_back(plan(
        fmt::format("sizes: {}..{}{}{}", least, most, dtypes[random() % 3], more[random() % 5])));
  }
  plans.push_back(plan(""));
  constexpr size_t kPeers = 4;
  std::vector<std::shared_ptr<PlanRegistry>> ranks;
  for (size_t r = 0; r < kPeers; ++r) {
    ranks.push_back(registry());
    std::vector<size_t> order(plans.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::shuffle(order, random);
    for (const size_t i : order) add(*ranks[r], plans[i], fmt::format("plan {}", i));
  }
  size_t different = 0;
  std::string last;
  for (int i = 0; i < 2000; ++i) {
    PlanRequest r = request(random() % 11000 / 8 * 8);
    r.call.dtype = random() % 2 == 0 ? Dtype::f32 : Dtype::f16;
    r.tag = random() % 2 == 0 ? "" : random() % 2 == 0 ? "a" : "b";
    r.registered = random() % 2 == 0;
    r.call.captured = random() % 2 == 0;
    r.alignment = 1u << random() % 8;
    const std::string first = pick(*ranks[0], r);
    for (const auto& rank : ranks) CHECK(pick(*rank, r) == first);
    different += first == last ? 0 : 1;
    last = first;
  }
  CHECK(different > 100);
}

TEST_CASE("plans are known by their content") {
  const auto all = registry();
  const std::string one = plan("sizes: 0..1KiB");
  const std::string id = add(*all, one, "one");
  CHECK(id.size() == 64);
  CHECK(add(*all, one, "again") == id);
  REQUIRE(all->plans().size() == 1);
  CHECK(all->plans()[0].id == id);
  CHECK(all->plans()[0].plan.name == "one");
  CHECK(add(*all, plan("sizes: 0..2KiB"), "two") != id);
  Diagnostics diagnostics;
  CHECK_FALSE(all->register_plan(plan("sizes: 0..3KiB"), "two", diagnostics));
  CHECK(diagnostics.all().at(0).code == "name-taken");
  CHECK(diagnostics.all()[0].message == "another plan is registered as 'two'");
  CHECK_FALSE(all->register_plan("{", "broken", diagnostics));
  CHECK(all->plans().size() == 2);
}

TEST_CASE("what was picked lives on when its plan is removed") {
  auto all = registry();
  const std::string id = add(*all, plan("sizes: 0..1KiB"), "one");
  add(*all, plan(""), "any");
  Diagnostics diagnostics;
  const auto picked = all->pick(request(1000), nullptr, diagnostics);
  CHECK(all->pick(request(1000), nullptr, diagnostics) == picked);
  CHECK(all->remove(id));
  CHECK_FALSE(all->remove(id));
  CHECK(pick(*all, request(1000)) == "any");
  CHECK(all->remove("any"));
  CHECK(pick(*all, request(1000)) == "nothing");
  all.reset();
  CHECK(picked->name == "one");
  CHECK(picked->plan->contract.ranks == kPickingRanks);
}

TEST_CASE("plans come and go while threads pick") {
  const auto all = registry();
  const std::string base = plan(""), extra = plan("sizes: 0..64KiB");
  add(*all, base, "base");
  std::atomic<bool> done = false;
  std::atomic<int> wrong = 0, picks = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!done.load() || picks.load() == 0) {
        const std::string name = pick(*all, request(1000));
        if (name != "base" && name != "extra") ++wrong;
        ++picks;
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    add(*all, extra, "extra");
    CHECK(pick(*all, request(1000)) == "extra");
    CHECK(all->remove("extra"));
    CHECK(pick(*all, request(1000)) == "base");
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("a selector stands in front") {
  const auto all = registry();
  const std::string id = add(*all, plan("sizes: 0..1KiB"), "one");
  add(*all, plan("", 2), "any");
  int asked = 0;
  all->set_selector([&](const PlanRequest& r) -> Selection {
    ++asked;
    if (r.tag == "none") return {.kind = Selection::Kind::none};
    if (r.tag == "one") return {Selection::Kind::plan, id};
    if (r.tag == "lost") return {Selection::Kind::plan, "lost"};
    return {};
  });
  const auto tagged = [](const char* tag, uint64_t bytes) {
    PlanRequest r = request(bytes);
    r.tag = tag;
    return r;
  };
  CHECK(pick(*all, tagged("", 1 << 20)) == "any");
  CHECK(pick(*all, tagged("one", 1 << 20)) == "one");  // its own range is no limit to a selector
  CHECK(pick(*all, tagged("none", 16)) == "nothing");
  CHECK(asked == 3);
  CHECK(pick(*all, tagged("one", 1 << 20)) == "one");
  CHECK(asked == 3);
  CHECK(pick(*all, tagged("lost", 16)) ==
        "the selector wants 'lost' for allgather over 2 ranks, 16 bytes, f32: no such plan is "
        "registered");
  PlanRequest four = tagged("one", 16);
  four.call.ranks = 4;
  CHECK(pick(*all, four) ==
        fmt::format("the selector wants '{}' for allgather over 4 ranks, 16 bytes, f32: it is for "
                    "2 ranks",
                    id));
  std::vector<PassedOver> over;
  Diagnostics diagnostics;
  const auto beyond = all->pick(tagged("one", 1 << 20), nullptr, diagnostics);
  CHECK(beyond->why == "the selector names it");
  CHECK(beyond->max_bytes == ~uint64_t{0});
  CHECK(all->pick(tagged("one", 1 << 10), nullptr, diagnostics) == beyond);
  CHECK(all->pick(tagged("none", 16), &over, diagnostics) == nullptr);
  CHECK(over.at(0).why == "the selector wants none for this call");
  all->set_selector({});
  CHECK(pick(*all, tagged("none", 16)) == "one");
}

TEST_CASE("what a selector holds may ask the registry when it goes") {
  const auto all = registry();
  add(*all, plan(""), "any");
  size_t there = 0;
  const auto ask = [&](void*) { there = all->plans().size(); };
  all->set_selector([held = std::shared_ptr<void>(nullptr, ask)](const PlanRequest&) {
    return Selection{.kind = Selection::Kind::none};
  });
  CHECK(pick(*all, request(1000)) == "nothing");
  all->set_selector({});
  CHECK(there == 1);
  CHECK(pick(*all, request(1000)) == "any");
}

TEST_CASE("a selector that asks the registry gets an error, and may be asked again") {
  const auto all = registry();
  add(*all, plan(""), "any");
  std::string inner;
  all->set_selector([&](const PlanRequest& r) -> Selection {
    inner = pick(*all, r);
    return {};
  });
  for (const uint64_t bytes : {16, 32}) {
    inner = "";
    CHECK(pick(*all, request(bytes)) == "any");
    CHECK(inner.ends_with("by itself: it must not make or choose calls"));
  }
}

TEST_CASE("the library is asked last") {
  Diagnostics diagnostics;
  const auto all = registry(builtin_library({}, diagnostics));
  add(*all, plan("sizes: 0..1KiB"), "one");
  CHECK(pick(*all, request(1000)) == "one");
  CHECK_THAT(pick(*all, request(2048)), Catch::StartsWith("allgather_packets:R=2,"));
  LibraryCall other{.kind = CollectiveKind::alltoall, .ranks = 3, .bytes = 1200};
  CHECK_THAT(pick(*all, {.call = other}), Catch::StartsWith("alltoall_packets:R=3,"));
  other.kind = CollectiveKind::barrier;
  CHECK(pick(*all, {.call = other}) == "nothing");
}

TEST_CASE("MSCCLC_PLAN_PATH names folders and files") {
  const std::string folder = scratch_folder("path"), file = folder + "/b.json";
  const std::string other = scratch_folder("other") + "/single.json";
  std::ofstream(folder + "/a.json") << plan("sizes: 0..1KiB");
  std::ofstream(file) << plan("");
  std::ofstream(other) << plan("sizes: 2KiB..4KiB");
  {
    const WithVariable path("MSCCLC_PLAN_PATH", folder + "::" + other);
    const auto all = registry();
    CHECK(pick(*all, request(1000)) == folder + "/a.json");
    CHECK(pick(*all, request(1024)) == file);
    CHECK(pick(*all, request(2048)) == other);
    Diagnostics diagnostics;
    const auto alone = PlanRegistry::create({.follow_environment = false}, diagnostics);
    REQUIRE(alone != nullptr);
    CHECK(alone->plans().empty());
  }
  const auto refusal = [](const std::string& value) {
    const WithVariable path("MSCCLC_PLAN_PATH", value);
    Diagnostics diagnostics;
    CHECK(PlanRegistry::create({}, diagnostics) == nullptr);
    CHECK(diagnostics.all().at(0).notes.back().text == "MSCCLC_PLAN_PATH names it");
    return diagnostics.all().at(0).code + ": " + diagnostics.all()[0].message;
  };
  CHECK(refusal(folder + ":nowhere") ==
        "cannot-read: cannot read 'nowhere': No such file or directory");
  const std::string pipe = folder + "/pipe";  // open at its other end, which writes nothing
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const int silent = ::open(pipe.c_str(), O_RDWR | O_CLOEXEC);
  CHECK(refusal(pipe) ==
        "cannot-read: cannot read '" + pipe + "': it is a pipe or a device, not a file");
  CHECK(refusal("/dev/zero") ==
        "cannot-read: cannot read '/dev/zero': it is a pipe or a device, not a file");
  ::close(silent);
  ::unlink(pipe.c_str());
  const std::string empty = scratch_folder("empty");
  CHECK(refusal(empty) == fmt::format("no-registry: '{}' has no plans (*.json)", empty));
  Diagnostics diagnostics;
  const auto all = registry();
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{0, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  const bool listed = all->add_path(folder, diagnostics);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK_FALSE(listed);
  CHECK(diagnostics.all().back().message ==
        fmt::format("cannot read the folder '{}': Too many open files", folder));
  diagnostics = {};
  // One plan that is wrong, and none is taken.
  std::ofstream(file) << "{";
  CHECK_FALSE(all->add_path(folder, diagnostics));
  CHECK(all->plans().empty());
}

TEST_CASE("folders may have rows for GEMMs that overlap, which come in the folders' order") {
  const auto write = [](const std::string& folder, const char* backend, const char* chunks) {
    std::ofstream(folder + "/overlap.json") << fmt::format(
        R"({{"rows": [{{"kind": "gemm_allreduce", "mode": "eager", "ranks": 2, "dtype": "bf16", )"
        R"("rows": [1, 8], "flops_a_byte": [0, 9], "backend": "{0}", "chunks": {1}, )"
        R"("budget": {1}}}]}})",
        backend, chunks);
  };
  const auto files = [](const PlanRegistry& all) {
    std::vector<std::string> names;
    for (const MeasuredTable& table : all.measured()->tables) {
      names.push_back(table.file + ": " + std::string(table.rows.at(0).backend));
    }
    return names;
  };
  const std::string alone = scratch_folder("rows"), with = scratch_folder("rows_and_plans");
  write(alone, "serial", "0");
  write(with, "copy_engine", "1");
  std::ofstream(with + "/a.json") << plan("sizes: 0..1KiB");
  {
    const WithVariable path("MSCCLC_PLAN_PATH", with + ":" + alone + "/");
    const auto all = registry();
    CHECK(files(*all) ==
          std::vector{with + "/overlap.json: copy_engine", alone + "/overlap.json: serial"});
    REQUIRE(all->plans().size() == 1);
    CHECK(pick(*all, request(1000)) == with + "/a.json");
    Diagnostics diagnostics;
    const auto unled = PlanRegistry::create({.follow_environment = false}, diagnostics);
    REQUIRE(unled != nullptr);
    CHECK(unled->measured()->tables.empty());
    CHECK(unled->add_path(alone, diagnostics));
    CHECK(unled->plans().empty());
    CHECK(files(*unled) == std::vector{alone + "/overlap.json: serial"});
  }
  // A table that is wrong, or plans beside one: nothing of the folder is taken.
  const auto all = registry();
  write(with, "fast", "1");
  Diagnostics diagnostics;
  CHECK_FALSE(all->add_path(with, diagnostics));
  CHECK(render_text(diagnostics, Sources())
            .find(with +
                  "/overlap.json: rows[0].backend: error: unknown backend of a row 'fast'; there "
                  "are mscclc, copy_engine, serial, nccl") == 0);
  write(with, "serial", "0");
  std::ofstream(with + "/a.json") << "{";
  CHECK_FALSE(all->add_path(with, diagnostics));
  CHECK(all->measured()->tables.empty());
  CHECK(all->plans().empty());
  write(alone, "serial", "1");
  const WithVariable path("MSCCLC_PLAN_PATH", alone);
  diagnostics = {};
  CHECK(PlanRegistry::create({}, diagnostics) == nullptr);
  CHECK(diagnostics.all().at(0).code == "not-a-library");
  CHECK(diagnostics.all().at(0).notes.back().text == "MSCCLC_PLAN_PATH names it");
}

TEST_CASE("MSCCLC_TUNER_FILE selects plans, or NCCL") {
  const std::string folder = scratch_folder("tuned");
  std::ofstream(folder + "/a.json") << plan("sizes: 0..1KiB");
  std::ofstream(folder + "/b.json") << plan("");
  std::ofstream(folder + "/tuner.conf") << fmt::format(
      "allgather,0,512,{}/b.json,-1,-1,-1,-1\nallgather,4096,8192,ring,ll,-1,-1,-1\n", folder);
  const WithVariable path("MSCCLC_PLAN_PATH", folder);
  const WithVariable tuner("MSCCLC_TUNER_FILE", folder + "/tuner.conf");
  const auto all = registry();
  CHECK(pick(*all, request(512)) == folder + "/b.json");
  CHECK(pick(*all, request(520)) == folder + "/a.json");
  CHECK(pick(*all, request(4096)) == "nothing");
  std::ofstream(folder + "/tuner.conf") << "allgather";
  Diagnostics diagnostics;
  CHECK(PlanRegistry::create({}, diagnostics) == nullptr);
  CHECK(diagnostics.all().at(0).code == "tuner-line");
}

TEST_CASE("MSCCLC_REQUIRE_PLAN makes a call without a plan an error") {
  const WithVariable require("MSCCLC_REQUIRE_PLAN", "1");
  const auto all = registry();
  add(*all, plan("sizes: 0..1KiB"), "one");
  CHECK(pick(*all, request(1000)) == "one");
  for (int i = 0; i < 2; ++i) {
    Diagnostics diagnostics;
    CHECK(all->pick(request(1 << 20), nullptr, diagnostics) == nullptr);
    const Diagnostic& error = diagnostics.all().at(0);
    CHECK(error.code == "no-plan");
    CHECK(error.message ==
          "no plan serves allgather over 2 ranks, 1048576 bytes, f32, under 'replicated' "
          "(MSCCLC_REQUIRE_PLAN)");
    REQUIRE(error.notes.size() == 1);
    CHECK(error.notes[0].text == "'one': it is for 0 to 1023 bytes");
  }
  const WithVariable wrong("MSCCLC_REQUIRE_PLAN", "yes");
  Diagnostics diagnostics;
  CHECK(PlanRegistry::create({}, diagnostics) == nullptr);
  CHECK(diagnostics.all().at(0).code == "bad-variable");
}

TEST_CASE("choices are logged, each once") {
  const std::string log = scratch_folder("log") + "/log";
  Diagnostics diagnostics;
  reset_log();
  REQUIRE(start_log(Environment({{"MSCCLC_DEBUG", "INFO"},
                                 {"MSCCLC_DEBUG_SUBSYS", "SELECT"},
                                 {"MSCCLC_DEBUG_FILE", log}}),
                    diagnostics));
  const auto all = registry();
  add(*all, plan("sizes: 0..1KiB"), "one");
  add(*all, plan(""), "any");
  for (int i = 0; i < 3; ++i) CHECK(pick(*all, request(2048)) == "any");
  reset_log();
  const std::string text = read_file(log).value();
  CHECK(std::ranges::count(text, '\n') == 2);
  CHECK_THAT(text, Catch::Contains("INFO SELECT allgather over 2 ranks, 2048 bytes, f32: 'any', "
                                   "the first registered plan that serves it\n"));
  CHECK_THAT(text, Catch::Contains("INFO SELECT allgather over 2 ranks, 2048 bytes, f32: not "
                                   "'one': it is for 0 to 1023 bytes\n"));
}

}  // namespace mscclc
