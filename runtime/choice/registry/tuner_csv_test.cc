// NCCL's tuner files, read, written and followed.
#include "runtime/api/tuner_csv.h"

#include <catch2/catch.hpp>

namespace mscclc {
namespace {

std::vector<TunerLine> lines_of(const std::string& text) {
  Diagnostics diagnostics;
  const auto lines = read_tuner_csv(text, "tuner.conf", diagnostics);
  INFO(render_text(diagnostics, Sources()));
  REQUIRE(lines);
  return *lines;
}

std::string refusal(const std::string& text) {
  Diagnostics diagnostics;
  CHECK_FALSE(read_tuner_csv(text, "t", diagnostics));
  return diagnostics.all().at(0).code + ": " + diagnostics.all()[0].message;
}

}  // namespace

TEST_CASE("lines are read and written again") {
  const auto lines = lines_of(
      "# mine\n"
      "\n"
      "allreduce,0,65535,small.json,-1,-1,1,8,-1,-1\r\n"
      "broadcast,65536,4294967295,tree,ll128,2,-1,-1\n"
      "reduce,1,2,ring,simple,-1,-1,4,3,1");
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].algorithm == "small.json");
  CHECK_FALSE(lines[0].is_nccl());
  CHECK(lines[0].ranks == 8u);
  CHECK(lines[1].is_nccl());
  CHECK(lines[1].channels == 2u);
  CHECK_FALSE(lines[1].nodes);
  CHECK(lines[2].registered == 1u);
  Diagnostics diagnostics;
  const auto text = write_tuner_csv(lines, diagnostics);
  REQUIRE(text);
  CHECK(lines_of(*text) == lines);
}

TEST_CASE("sizes of 4 GiB and more") {
  const auto lines = lines_of(
      "allreduce,0,4294967295,ring,simple,16,2,8,-1,-1\n"
      "allreduce,4294967296,17179869184,tree,simple,16,2,8,-1,-1\n"
      "allreduce,17179869185,18446744073709551615,ring,simple,16,2,8,-1,-1\n");
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].max == 4294967295);
  CHECK(lines[1].max == 17179869184);
  CHECK(lines[2].max == kTunerNoEnd);
  PlanRequest request{.call = {.kind = CollectiveKind::allreduce, .ranks = 8, .nodes = 2}};
  for (const auto& [bytes, line] :
       {std::pair(uint64_t{4294967295}, 0), std::pair(uint64_t{4294967296}, 1),
        std::pair(uint64_t{1} << 34, 1), std::pair(uint64_t{1} << 40, 2)}) {
    request.call.bytes = bytes;
    for (int i = 0; i < 3; ++i) CHECK(lines[i].fits(request) == (i == line));
  }
  Diagnostics diagnostics;
  CHECK(lines_of(*write_tuner_csv(lines, diagnostics)) == lines);
  // Where no line has such sizes, the largest number of 32 bits is no end.
  CHECK(lines_of("reduce,0,4294967295,ring,ll,-1,-1,-1")[0].max == kTunerNoEnd);
  const auto text = [&](uint64_t min, uint64_t max) {
    const std::string all = *write_tuner_csv(
        std::vector<TunerLine>{{.min = min, .max = max, .algorithm = "a"}}, diagnostics);
    return all.substr(all.find("allreduce,") + 10, all.find(",a,") - all.find("allreduce,") - 10);
  };
  CHECK(text(0, kTunerNoEnd) == "0,4294967295");
  CHECK(text(0, 4294967295) == "0,4294967294");
  CHECK(text(0, 4294967296) == "0,4294967296");
  CHECK(text(4294967296, kTunerNoEnd) == "4294967296,18446744073709551615");
}

TEST_CASE("blanks and comments in lines") {
  const auto lines = lines_of(
      "  # indented\n"
      " \t\n"
      "allreduce, 0, 1024 ,ring\t, simple , 16,2, 8, -1, -1   # small ones, by hand\r\n"
      "\tbroadcast,0,1,tree,ll,-1,-1,-1#\n");
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] == TunerLine{.min = 0,
                              .max = 1024,
                              .algorithm = "ring",
                              .protocol = "simple",
                              .channels = 16,
                              .nodes = 2,
                              .ranks = 8});
  CHECK(lines[1].kind == CollectiveKind::broadcast);
  CHECK(lines[1].protocol == "ll");
}

TEST_CASE("lines that are wrong") {
  CHECK(refusal("allreduce,0,1,ring\n") == "tuner-line: t:1: expected 8 to 10 fields, got 4");
  CHECK(refusal("#\nalltoall,0,1,ring,ll,-1,-1,-1") ==
        "tuner-line: t:2: unknown collective 'alltoall'; allowed are broadcast, reduce, allgather, "
        "reducescatter and allreduce");
  const std::string sizes =
      "tuner-line: t:1: expected two sizes in bytes, the smaller first, up to 18446744073709551615";
  CHECK(refusal("allreduce,2,1,ring,ll,-1,-1,-1") == sizes);
  CHECK(refusal("allreduce,-1,1,ring,ll,-1,-1,-1") == sizes);
  CHECK(refusal("allreduce,0 1,1,ring,ll,-1,-1,-1") == sizes);
  CHECK(refusal("allreduce, ,1,ring,ll,-1,-1,-1") == sizes);
  CHECK(refusal("allreduce,0,1,ring,ll#,-1,-1,-1") ==
        "tuner-line: t:1: expected 8 to 10 fields, got 5");
  CHECK(refusal("allreduce,0,99999999999999999999,ring,ll,-1,-1,-1") == sizes);
  CHECK(refusal("allreduce,0,1,,ll,-1,-1,-1") ==
        "tuner-line: t:1: expected an algorithm or a plan");
  CHECK(refusal("allreduce,0,1,ring,fast,-1,-1,-1") ==
        "tuner-line: t:1: unknown protocol 'fast'; allowed are ll, ll128, simple and -1");
  CHECK(refusal("allreduce,0,1,ring,ll,-1,x,-1") ==
        "tuner-line: t:1: field 7: expected a number, or -1 for any");
  CHECK(refusal("allreduce,0,1,ring,ll,-1,-1,-2") ==
        "tuner-line: t:1: field 8: expected a number, or -1 for any");
  Diagnostics diagnostics;
  CHECK_FALSE(write_tuner_csv(std::vector<TunerLine>{{.algorithm = "a,b"}}, diagnostics));
  CHECK(diagnostics.all()[0].message == "NCCL's tuner files have no line for allreduce by 'a,b'");
  CHECK_FALSE(write_tuner_csv(
      std::vector<TunerLine>{{.kind = CollectiveKind::alltoall, .algorithm = "a"}}, diagnostics));
}

TEST_CASE("the first line that fits selects") {
  const PlanSelector select =
      tuner_selector(lines_of("allreduce,0,1024,small.json,-1,-1,1,8\n"
                              "allreduce,0,1024,ring,ll,-1,2,-1\n"
                              "allreduce,1025,4294967295,large.json,-1,-1,-1,-1,-1,1\n"));
  const auto selected = [&](LibraryCall call, bool registered = false) {
    const Selection s = select({.call = call, .registered = registered});
    return s.kind == Selection::Kind::plan   ? s.plan
           : s.kind == Selection::Kind::none ? "none"
                                             : "usual";
  };
  LibraryCall call{.kind = CollectiveKind::allreduce, .ranks = 8, .bytes = 1024};
  CHECK(selected(call) == "small.json");
  call.ranks = 4;
  CHECK(selected(call) == "usual");
  call.nodes = 2;
  CHECK(selected(call) == "none");
  call.bytes = uint64_t{1} << 40;
  CHECK(selected(call) == "usual");
  CHECK(selected(call, true) == "large.json");
  call.kind = CollectiveKind::broadcast;
  CHECK(selected(call, true) == "usual");
}

}  // namespace mscclc
