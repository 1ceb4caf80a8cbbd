#include "executor/cost/machines.h"

#include <catch2/catch.hpp>

#include "executor/cost/model.h"
#include "executor/testing/test_plans.h"

namespace mscclc::cost {

TEST_CASE("without a name, the smallest machine that can run the plan") {
  Diagnostics diagnostics;
  const auto two = testing::one_shot(2, 1, PacketFormat::LL16);
  const auto four = testing::one_shot(4, 1, PacketFormat::LL16);
  CHECK(machine_for(two.program, "", diagnostics)->name == "2xH200");
  CHECK(machine_for(four.program, "", diagnostics)->name == "4xH200");
  CHECK(machine_for(two.program, "8xH100", diagnostics)->name == "8xH100");
  const auto sixteen = testing::one_shot(16, 1, PacketFormat::LL16);
  const auto found = machine_for(sixteen.program, "", diagnostics);
  CHECK(found->ranks() == 16);
  CHECK(found->nodes == 1);
  CHECK_FALSE(machine_for(two.program, "9xH9", diagnostics));
  CHECK(diagnostics.has_errors());
}

TEST_CASE("ranks that a switch joins are in one node") {
  testing::TestProgram t(2, 1);
  for (uint32_t r = 0; r < 2; ++r) t.switch_channel(r, "sw", {0, 1});
  Diagnostics diagnostics;
  CHECK(fits(t.program, *find_machine("2xH200", diagnostics), diagnostics));
  CHECK_FALSE(fits(t.program, *find_machine("2xH100", diagnostics), diagnostics));
  REQUIRE(diagnostics.all().size() == 1);
  CHECK(
      diagnostics.all()[0].message.starts_with("ranks 0 and 1 share memory in the plan, and are "
                                               "on two nodes of the machine '2xH100'"));
}

TEST_CASE("the same machine for more ranks has more GPUs, or more nodes") {
  Machine one;
  one.name = "one";
  one.gpus = 4;
  resize(one, 8);
  CHECK(one.gpus == 8);
  CHECK(one.name == "one with 8 GPUs");
  resize(one, 8);
  CHECK(one.name == "one with 8 GPUs");
  Machine several;
  several.gpus = 8;
  several.nodes = 2;
  resize(several, 30);
  CHECK(several.gpus == 8);
  CHECK(several.nodes == 4);
  CHECK(several.name == " with 32 GPUs");
}

}  // namespace mscclc::cost
