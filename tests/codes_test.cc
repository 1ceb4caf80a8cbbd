// The table of diagnostics' codes is whole: what the sources report is in it, and nothing else is.
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "ir/diagnostics/diagnostic_codes.h"
#include "ir/support/read_file.h"
#include "tests/shell.h"

namespace mscclc {
namespace {

namespace fs = std::filesystem;

/// Text in quotes with a hyphen that is no code: names of threads, programs, benchmarks and modes.
const std::set<std::string> kNoCodes = {"mscclc-bench",
                                        "mscclc-boot",
                                        "mscclc-fds",
                                        "mscclc-hub",
                                        "mscclc-worker",
                                        "mscclc-lane",
                                        "mscclc-log",
                                        "mscclc-nccl",
                                        "mscclc-net",
                                        "mscclc-nvcc",
                                        "mscclc-proof",
                                        "mscclc-proxy",
                                        "mscclc-rank",
                                        "mscclc-signals",
                                        "mscclc-stream",
                                        "mscclc-watch",
                                        "nccl-symmetric",
                                        "handwritten-1shot",
                                        "handwritten-2shot",
                                        "handwritten-exchange",
                                        "handwritten-slices",
                                        "host-no-atomic",
                                        "utf-8",
                                        "utf-16",
                                        "nv-fabricmanager",
                                        "bazel-bin"};

std::set<std::string> codes() {
  std::set<std::string> names;
  for (const CodeInfo& row : code_table()) names.insert(std::string(row.name));
  return names;
}

/// What may be a code in a source: words with hyphens in quotes, and what stands first in a report.
std::set<std::string> codes_in(const std::string& source) {
  static const std::regex comment(R"(//[^\n]*)"), hyphened(R"re("([a-z0-9]+(-[a-z0-9]+)+)")re"),
      reported(R"re(\b(error|warning|error_at|op_error|fail|refuse|set)\(\s*)re"
               R"re(([A-Za-z_.>*-]+,\s*)?"([a-z][a-z0-9-]*)",)re");
  const std::string text = std::regex_replace(source, comment, "");
  std::set<std::string> found;
  const std::sregex_iterator end;
  for (std::sregex_iterator i(text.begin(), text.end(), hyphened); i != end; ++i) {
    if (kNoCodes.count((*i)[1]) == 0) found.insert((*i)[1]);
  }
  for (std::sregex_iterator i(text.begin(), text.end(), reported); i != end; ++i) {
    found.insert((*i)[3]);
  }
  return found;
}

/// The sources of the library and of the commands, which the test has as data.
std::map<std::string, std::string> sources() {
  std::map<std::string, std::string> texts;
  for (const char* folder : {"ir", "passes", "plans", "compiler", "executor", "runtime", "tools"}) {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      const std::string path = entry.path().string();
      if (path.ends_with("_test.cc") || path.find("/fake_") != std::string::npos) continue;
      if (path.ends_with(".cc") || path.ends_with(".h") || path.ends_with(".cu")) {
        texts[path] = read_file(path).value();
      }
    }
  }
  return texts;
}

TEST_CASE("every code that is reported is in the table, and every row is reported") {
  const std::set<std::string> known = codes();
  const auto texts = sources();
  REQUIRE(texts.size() > 200);
  std::string everything;
  for (const auto& [path, text] : texts) {
    for (const std::string& code : codes_in(text)) {
      INFO(path << " has \"" << code << "\": a new code needs a row in diagnostic_codes.def");
      CHECK(known.count(code) == 1);
    }
    everything += text;
  }
  for (const std::string& code : known) {
    INFO(code << " is in diagnostic_codes.def, and nothing reports it");
    CHECK(everything.find('"' + code + '"') != std::string::npos);
  }
}

TEST_CASE("what is reported has the severity of its row") {
  static const std::regex reported(R"re([.>](warning|warn|error|error_at)\(\s*"([a-z0-9-]+)")re");
  std::map<std::string, Severity> severities;
  for (const CodeInfo& row : code_table()) severities[std::string(row.name)] = row.severity;
  size_t reports = 0;
  for (const auto& [path, text] : sources()) {
    const std::sregex_iterator end;
    for (std::sregex_iterator i(text.begin(), text.end(), reported); i != end; ++i, ++reports) {
      const bool warns = (*i)[1].str().starts_with("warn");
      INFO(path << ": " << (*i)[2]);
      CHECK(severities[(*i)[2]] == (warns ? Severity::warning : Severity::error));
    }
  }
  CHECK(reports > 200);
}

TEST_CASE("the table has each code once") {
  CHECK(codes().size() == code_table().size());
  for (const CodeInfo& row : code_table()) {
    INFO(row.name);
    CHECK(std::regex_match(std::string(row.name), std::regex("[a-z][a-z0-9]*(-[a-z0-9]+)*")));
    CHECK_FALSE(row.meaning.empty());
  }
}

TEST_CASE("the runtime has errors for which no program is to blame") {
  CHECK(is_of_job("call-differs"));
  CHECK(is_of_job("out-of-memory"));
  CHECK_FALSE(is_of_job("hang"));
  CHECK_FALSE(is_of_job("no such code"));
  for (const CodeInfo& row : code_table()) {
    INFO(row.name);
    if (row.cause == CodeCause::job) {
      CHECK(row.area == CodeArea::runtime);
      CHECK(row.severity == Severity::error);
    }
  }
}

TEST_CASE("a code that is not in the table is found") {
  CHECK(codes_in("diagnostics.error(\"brand-new\", {}, text);").count("brand-new") == 1);
  CHECK(codes_in("refuse(diagnostics, \"novel\", text)").count("novel") == 1);
  CHECK(codes_in("d.code = cond ? \"old-one\" : \"new-one\";").size() == 2);
  CHECK(codes_in("// error(\"gone-by\", 1)\nf(\"mscclc-hub\", \"plain\");").empty());
}

TEST_CASE("docs/diagnostics.md is what //ir/diagnostics:codes_page prints") {
  CHECK(read_file("docs/diagnostics.md").value() == code_reference());
}

}  // namespace
}  // namespace mscclc
