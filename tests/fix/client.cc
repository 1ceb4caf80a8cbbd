#include "tests/fix/client.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "ir/support/read_file.h"
#include "tests/shell.h"

namespace mscclc::testing {
namespace {

using Json = nlohmann::json;

/// Replaces, from the end, so that the places of those before stay as they are.
std::string apply(std::string text, const Json& edits) {
  std::vector<Json> sorted(edits.begin(), edits.end());
  std::ranges::sort(sorted, [](const Json& a, const Json& b) { return a["begin"] > b["begin"]; });
  for (const Json& edit : sorted) {
    const size_t begin = edit["begin"], end = edit["end"];
    text.replace(begin, end - begin, edit["text"].get<std::string>());
  }
  return text;
}

}  // namespace

int Client::run(const std::string& program, const std::string& command) const {
  write_whole(folder_ / "program.mscl", program);
  return run_shell(command, folder_, folder_ / "out", folder_ / "err");
}

Client::Answer Client::ask(const std::string& program, const std::string& options) const {
  run(program, "mscclc verify --json program.mscl " + options);
  Answer answer;
  std::istringstream lines(read_file((folder_ / "out").string()).value());
  for (std::string line; std::getline(lines, line);) {
    const Json object = Json::parse(line);
    if (object.contains("proved")) answer.proved = object["proved"];
    if (object.value("severity", "") != "error") continue;
    if (answer.first_error.empty()) answer.first_error = object["code"];
    if (!object.contains("patches") || !answer.patched.empty()) continue;
    const Json& patch = object["patches"][0];
    answer.title = patch["title"];
    answer.patched = apply(program, patch["edits"]);
  }
  return answer;
}

bool Client::is_proved(const std::string& program, const std::string& options) const {
  return run(program, "mscclc verify program.mscl " + options) == 0;
}

bool Client::runs(const std::string& program) const {
  return run(program, "mscclc run program.mscl --bytes 1K,20000 --dtype all") == 0;
}

}  // namespace mscclc::testing
