// Environment variables: what is allowed, what is not and how that is reported; the committed page.
#include "runtime/support/environment/environment.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "ir/support/read_file.h"
#include "runtime/support/environment/environment_doc.h"

namespace mscclc {
namespace {

struct Read {
  std::optional<uint64_t> number;
  std::optional<std::string> text;
  std::string error;
};

Read read(Variable variable, const std::string& value) {
  const Environment environment(Environment::Values{{std::string(info(variable).name), value}});
  Diagnostics diagnostics;
  Read out;
  const VariableKind kind = info(variable).kind;
  if (kind == VariableKind::count || kind == VariableKind::seconds) {
    out.number = environment.number(variable, diagnostics);
  } else {
    out.text = environment.text(variable, diagnostics);
  }
  if (diagnostics.has_errors()) {
    CHECK(diagnostics.all().front().code == "bad-variable");
    out.error = diagnostics.all().front().message;
  }
  return out;
}

TEST_CASE("docs/environment.md is current (mscclc env --format=markdown > docs/environment.md)") {
  CHECK(read_file("docs/environment.md").value() == environment_reference());
}

TEST_CASE("the page and the terminal name every variable") {
  const std::string nothing_set = environment_text(Environment(Environment::Values{}));
  CHECK(nothing_set.starts_with("Set now:\n  none of these\n"));
  for (const VariableInfo& row : variable_table()) {
    CHECK(&info(row.variable) == &row);
    CHECK(environment_reference().find(fmt::format("| `{}` |", row.name)) != std::string::npos);
    CHECK(nothing_set.find(fmt::format("\n  {} (", row.name)) != std::string::npos);
    CHECK(row.least <= row.most);
  }
}

TEST_CASE("the terminal shows what is set, but no secrets") {
  const Environment some(
      Environment::Values{{"MSCCLC_TIMEOUT", "30"}, {"MSCCLC_SECRET", "hush"}, {"OTHER", "1"}});
  const std::string text = environment_text(some);
  CHECK(text.substr(0, text.find("\n\n")).find("MSCCLC_TIMEOUT=30") != std::string::npos);
  CHECK(text.find("MSCCLC_SECRET=(secret)") != std::string::npos);
  CHECK(text.find("hush") == std::string::npos);
}

TEST_CASE("fallbacks are allowed values") {
  for (const VariableInfo& row : variable_table()) {
    if (!row.fallback.empty()) CHECK(read(row.variable, std::string(row.fallback)).error.empty());
  }
}

TEST_CASE("a timeout of 0 means no limit") {
  const auto timeout = [](const char* text) {
    Diagnostics diagnostics;
    return Environment(Environment::Values{{"MSCCLC_TIMEOUT", text}}).timeout(diagnostics);
  };
  CHECK(timeout("0") == kForever);
  CHECK(timeout("7") == std::chrono::seconds(7));
  CHECK(timeout("") == std::chrono::seconds(600));
  CHECK(!timeout("soon"));
}

TEST_CASE("numbers are whole, plain and in range") {
  CHECK(read(Variable::MSCCLC_TIMEOUT, "1").number == 1);
  CHECK(read(Variable::MSCCLC_TIMEOUT, "86400").number == 86400);
  CHECK(read(Variable::RANK, "0").number == 0);
  CHECK(read(Variable::MSCCLC_TIMEOUT, "0").number == 0);
  for (const char* wrong : {"86401", "-1", "+5", " 5", "5 ", "5s", "0x10", "1e3", "010", "1.5",
                            "18446744073709551617", "ten"}) {
    const Read out = read(Variable::MSCCLC_TIMEOUT, wrong);
    CHECK_FALSE(out.number);
    CHECK(out.error == fmt::format("MSCCLC_TIMEOUT is '{}'; allowed is a whole number of seconds "
                                   "from 0 to 86400",
                                   wrong));
  }
  CHECK(read(Variable::RANK, "70000").error ==
        "RANK is '70000'; allowed is a whole number from 0 to 65535");
}

TEST_CASE("text is printable and not too long") {
  CHECK(read(Variable::MASTER_ADDR, "node-1.cluster").text == "node-1.cluster");
  CHECK(read(Variable::MASTER_ADDR, "a\nb").error ==
        "MASTER_ADDR is 'a\\x0ab'; allowed is printable text of 1 to 255 bytes");
  CHECK(read(Variable::MSCCLC_PLAN_PATH, "/home/müller/плани").text == "/home/müller/плани");
  CHECK(read(Variable::MASTER_ADDR, "a\x7f").error ==
        "MASTER_ADDR is 'a\\x7f'; allowed is printable text of 1 to 255 bytes");
  const Read longer = read(Variable::MASTER_ADDR, std::string(256, 'x'));
  CHECK(longer.error == "MASTER_ADDR is '" + std::string(80, 'x') +
                            "…'; allowed is printable text of 1 to 255 bytes");
}

TEST_CASE("text of any length that is not one of the words is refused with the words") {
  for (const std::string& wrong : {std::string("no"), std::string(65, 'x')}) {
    CHECK(read(Variable::MSCCLC_NCCL_COMM, wrong).error ==
          "MSCCLC_NCCL_COMM is '" + wrong + "'; allowed is 'init' or 'lazy'");
  }
  CHECK(read(Variable::MSCCLC_LANE, "a\tb").error ==
        "MSCCLC_LANE is 'a\\x09b'; allowed is 'sockets' or 'verbs'");
}

TEST_CASE("secrets are not shown") {
  const Read out = read(Variable::MSCCLC_SECRET, "hush\x01");
  CHECK(out.error == "MSCCLC_SECRET has 5 bytes; allowed is printable text of 1 to 1024 bytes");
}

TEST_CASE("what is not set, or set to nothing, has the fallback or nothing") {
  Diagnostics diagnostics;
  const Environment environment({{"MSCCLC_TIMEOUT", ""}, {"RANK", ""}});
  CHECK(environment.number(Variable::MSCCLC_TIMEOUT, diagnostics) == 600);
  CHECK_FALSE(environment.has(Variable::RANK));
  CHECK_FALSE(environment.number(Variable::RANK, diagnostics));
  CHECK_FALSE(environment.text(Variable::MASTER_ADDR, diagnostics));
  CHECK(diagnostics.all().empty());
}

TEST_CASE("every variable of ours is checked, whether it is needed or not") {
  for (const VariableInfo& row : variable_table()) {
    Diagnostics diagnostics;
    const Environment environment(Environment::Values{{std::string(row.name), "\x07"}});
    const bool ours = row.group == VariableGroup::ours;
    CHECK(environment.check_ours(diagnostics) != ours);
    REQUIRE(diagnostics.all().size() == (ours ? 1 : 0));
    if (ours) CHECK(diagnostics.all()[0].message.starts_with(row.name));
  }
}

TEST_CASE("all mistakes are reported, and words that there are not") {
  Diagnostics diagnostics;
  const Environment environment({{"MSCCLC_FORCE_DISABLE_GDR", "2"},
                                 {"MSCCLC_IBV_MODE", "guest"},
                                 {"MSCCLC_IB_QPS", "4"},
                                 {"MSCCLC_LANE", "verbs"},
                                 {"MSCCLC_SYMMETRIC_MEMORY", "none"}});
  CHECK_FALSE(environment.check_ours(diagnostics));
  REQUIRE(diagnostics.all().size() == 3);
  CHECK(diagnostics.all()[0].message ==
        "MSCCLC_FORCE_DISABLE_GDR is '2'; allowed is a whole number from 0 to 1");
  CHECK(diagnostics.all()[1].message ==
        "MSCCLC_IBV_MODE is 'guest'; allowed is 'host' or 'host-no-atomic'");
  CHECK(diagnostics.all()[2].message ==
        "MSCCLC_SYMMETRIC_MEMORY is 'none'; allowed is 'native' or 'torch' or 'cuda' or 'nccl' or "
        "'nvshmem'");
}

TEST_CASE("variables that nothing reads are warned of") {
  Diagnostics diagnostics;
  const Environment environment(
      {{"MSCCLC_TIMOUT", "5"}, {"MSCCLC_X_Y_Z", ""}, {"MSCCLC_FOO", "1"}, {"OTHER", "1"}});
  environment.warn_of_unknown(diagnostics);
  REQUIRE(diagnostics.all().size() == 3);
  CHECK_FALSE(diagnostics.has_errors());
  // Such a name has nothing in common with others except what all names have.
  CHECK(diagnostics.all()[0].message == "nothing reads the environment variable 'MSCCLC_FOO'");
  CHECK(diagnostics.all()[1].message ==
        "nothing reads the environment variable 'MSCCLC_TIMOUT'; did you mean 'MSCCLC_TIMEOUT'?");
  CHECK(diagnostics.all()[2].message == "nothing reads the environment variable 'MSCCLC_X_Y_Z'");
}

TEST_CASE("the environment of this process") {
  ::setenv("MSCCLC_TIMEOUT", "77", 1);
  Diagnostics diagnostics;
  CHECK(Environment::of_process().number(Variable::MSCCLC_TIMEOUT, diagnostics) == 77);
  ::unsetenv("MSCCLC_TIMEOUT");
  CHECK(Environment::of_process().number(Variable::MSCCLC_TIMEOUT, diagnostics) == 600);
}

TEST_CASE("a process warns once of variables that nothing reads") {
  forget_unknown_warning();
  const Environment environment(Environment::Values{{"MSCCLC_TIMOUT", "5"}});
  for (const size_t warnings : {1, 0}) {
    Diagnostics diagnostics;
    warn_of_unknown_once(environment, diagnostics);
    CHECK(diagnostics.all().size() == warnings);
  }
  forget_unknown_warning();
}

}  // namespace
}  // namespace mscclc
