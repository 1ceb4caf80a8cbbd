// The prover is tested as it tests: each of its premises (passes/prove/model/premises.def) is taken
// away in turn, and some program of its own tests must show it: a wrong one is proved, or something
// is said of one that is not true. So no rule stands there that could be lost unnoticed.
//
// `prover_mutants_test MUTANT [NAME...]`: all premises, or those named. docs/design/premises.md
// lists them: `--update` writes it anew.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program/proof.h"
#include "ir/support/fnv.h"
#include "passes/prove/model/premise.h"

extern char** environ;

namespace {

namespace fs = std::filesystem;

struct Row {
  std::string name, lemma, says;
};

const std::vector<Row> kRows = {
#define PREMISE(name, lemma, says) {#name, lemma, says},
#include "passes/prove/model/premises.def"
#undef PREMISE
};

/// A record of a proof, also in a user's cache, counts for the version that made it. Where premises
/// come or go the version goes up (ir/program/proof.cc), and this with it.
constexpr uint32_t kVersion = 15;
constexpr std::string_view kPremises = "184a6a80e43cb865";  ///< names and lemmas, hashed

constexpr size_t kAtOnce = 2;

/// Those whose loss no program can show, and why. None may join them unnoticed, and none stays here
/// once a program shows it.
const std::map<std::string, std::string> kNotShown = {
    {"seen_later",
     "no program shows it: what the load of an earlier call would order is in no order in the "
     "first "
     "call, which has none before it; a load of this call has waited for other packets of these "
     "bytes, so "
     "that no poll shows these (O15)"},
};

/// Runs the prover's tests without a premise; kRows.size(): with all.
pid_t start(const std::string& mutant, size_t removed) {
  std::vector<std::string> words = {mutant, "--abort", "~[large]"};
  std::vector<char*> args;
  for (std::string& word : words) args.push_back(word.data());
  args.push_back(nullptr);
  std::string variable = fmt::format("MSCCLC_REMOVED_PREMISE={}", removed);
  std::vector<char*> environment = {variable.data()};
  for (char** e = environ; *e != nullptr; ++e) {
    // Bazel's, by which the child would report as this test.
    if (!std::string_view(*e).starts_with("TEST_") &&
        !std::string_view(*e).starts_with("XML_OUTPUT_FILE")) {
      environment.push_back(*e);
    }
  }
  environment.push_back(nullptr);
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  for (const int fd : {1, 2}) {
    posix_spawn_file_actions_addopen(&quiet, fd, "/dev/null", O_WRONLY, 0);
  }
  pid_t child = 0;
  const int error =
      posix_spawn(&child, mutant.c_str(), &quiet, nullptr, args.data(), environment.data());
  posix_spawn_file_actions_destroy(&quiet);
  return error == 0 ? child : -1;
}

/// The mutants that no test has noticed. What crashes has been noticed.
std::vector<size_t> survivors(const std::string& mutant, const std::vector<size_t>& numbers) {
  std::vector<size_t> left;
  std::map<pid_t, size_t> running;
  const auto end_one = [&] {
    int status = 0;
    const pid_t child = wait(&status);
    const size_t number = running.at(child);
    running.erase(child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) left.push_back(number);
  };
  for (const size_t number : numbers) {
    if (running.size() == kAtOnce) end_one();
    const pid_t child = start(mutant, number);
    if (child < 0) {
      left.push_back(number);
    } else {
      running[child] = number;
    }
  }
  while (!running.empty()) end_one();
  std::ranges::sort(left);
  return left;
}

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// The sources that ask for a premise, as links of a page in docs/design.
std::string places_of(const std::string& name, const std::map<std::string, std::string>& sources) {
  std::string places;
  for (const auto& [path, text] : sources) {
    const std::string use = "Premise::" + name;
    for (size_t at = text.find(use); at != std::string::npos; at = text.find(use, at + 1)) {
      const char next = text[at + use.size()];
      if (std::isalnum(static_cast<unsigned char>(next)) || next == '_') continue;
      places += fmt::format("{}[{}](../../{})", places.empty() ? "" : ", ",
                            fs::path(path).filename().string(), path);
      break;
    }
  }
  return places;
}

/// docs/design/premises.md; nullopt: a premise is asked for nowhere.
std::optional<std::string> page() {
  std::map<std::string, std::string> sources;
  for (const auto& entry : fs::recursive_directory_iterator("passes/prove")) {
    const std::string path = entry.path().string();
    if (path.ends_with(".cc") || path.ends_with(".h")) sources[path] = read(path);
  }
  std::string text =
      "# Premises of the prover\n\n"
      "<!-- bazel run //tests/prover_mutants:prover_mutants_test -- --update -->\n\n"
      "What the [lemmas](lemmas.md) of the proof ask for, and the source that checks it, from\n"
      "[premises.def](../../passes/prove/model/premises.def). *Model* is what the abstract machine "
      "and\n"
      "[proofs.md](proofs.md#the-model) say of who knows what. Each has a\n"
      "[mutant](explorer.md#mutants-of-the-prover), a prover that takes it as met, which some "
      "test\n"
      "notices; the last column says why none can.\n\n"
      "| lemma | premise | | checked in | its mutant |\n|---|---|---|---|---|\n";
  std::vector<Row> rows = kRows;
  const auto order = [](const Row& row) {
    const std::string digits = row.lemma.substr(std::min<size_t>(1, row.lemma.size()));
    const bool model = row.lemma == "model";
    return std::tuple(!model, model ? 'A' : row.lemma[0], model ? 0 : std::atoi(digits.c_str()));
  };
  std::ranges::stable_sort(rows, {}, order);
  for (const Row& row : rows) {
    const std::string places = places_of(row.name, sources);
    if (places.empty()) {
      fmt::print(stderr, "{} is asked for nowhere\n", row.name);
      return std::nullopt;
    }
    const auto found = kNotShown.find(row.name);
    text += fmt::format("| {} | `{}` | {} | {} | {} |\n", row.lemma, row.name, row.says, places,
                        found == kNotShown.end() ? "" : found->second);
  }
  return text;
}

bool check_pages() {
  const auto wanted = page();
  if (!wanted) return false;
  const bool listed = read("docs/design/premises.md") == *wanted;
  if (!listed)
    fmt::print(stderr, "docs/design/premises.md is not what the sources say: --update\n");
  const std::string count = fmt::format("**{} mutants, of which {} are noticed**", kRows.size(),
                                        kRows.size() - kNotShown.size());
  const bool counted = read("docs/design/explorer.md").find(count) != std::string::npos;
  if (!counted) fmt::print(stderr, "docs/design/explorer.md does not say {}\n", count);
  return listed && counted;
}

bool check_version() {
  mscclc::Fnv hash;
  for (const Row& row : kRows) hash.add(row.name + ' ' + row.lemma + '\n');
  if (mscclc::kProverVersion == kVersion && hash.hex() == kPremises) return true;
  fmt::print(stderr,
             "the premises are others than those of version {}: raise kProverVersion, and say here "
             "version {} with \"{}\"\n",
             kVersion, mscclc::kProverVersion, hash.hex());
  return false;
}

bool update() {
  const auto text = page();
  const char* const folder = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  if (!text || folder == nullptr) return false;
  std::ofstream(fs::path(folder) / "docs/design/premises.md") << *text;
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::vector<std::string> words(argv + 2, argv + argc);
  if (words == std::vector<std::string>{"--update"}) return update() ? 0 : 1;
  if (!check_version()) return 1;
  std::vector<size_t> numbers;
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (words.empty() || std::ranges::count(words, kRows[i].name) > 0) numbers.push_back(i);
  }
  if (survivors(argv[1], {kRows.size()}).empty()) {
    fmt::print(stderr, "a test fails with all premises in place\n");
    return 1;
  }
  const std::vector<size_t> left = survivors(argv[1], numbers);
  bool as_listed = true;
  for (const size_t i : numbers) {
    const bool survives = std::ranges::count(left, i) > 0;
    const bool listed = kNotShown.contains(kRows[i].name);
    as_listed &= survives == listed;
    if (survives == listed) continue;
    fmt::print("{}: {} ({}): {}\n", survives ? "survives" : "is noticed, take it off the list",
               kRows[i].name, kRows[i].lemma, kRows[i].says);
  }
  fmt::print("{} mutants, {} of them survive\n", numbers.size(), left.size());
  return as_listed && (!words.empty() || check_pages()) ? 0 : 1;
}
