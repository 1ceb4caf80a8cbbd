#include "tests/fix/faults.h"

#include <algorithm>
#include <filesystem>
#include <regex>

#include "ir/support/read_file.h"

namespace mscclc::testing {
namespace {

/// One match of the pattern in the body of a program becomes the replacement.
struct FaultKind {
  const char *name, *pattern, *replacement;
};

constexpr FaultKind kKinds[] = {
    {"an op is spelt wrong: put", R"(\bput\b)", "ptu"},
    {"an op is spelt wrong: signal", R"(\bsignal\b)", "singal"},
    {"an op is spelt wrong: reduce", R"(\breduce\b)", "redcue"},
    {"a buffer is spelt wrong", R"(\binbox\b)", "inbxo"},
    {"a value is spelt wrong", R"(\bothers\b)", "othres"},
    {"an option is spelt wrong", R"(\bcopies:)", "copys:"},
    {"a statement is spelt wrong: channel", R"(\bchannel\b)", "chanel"},
    {"a statement is spelt wrong: buffer", R"(\bbuffer\b)", "bufer"},
    {"a line that signals is forgotten", R"(\n *signal [^\n]*)", ""},
    {"a signal at the end of a line is forgotten", R"( ; signal [^;}\n]*)", " "},
    {"a line that waits is forgotten", R"(\n *wait [^\n]*)", ""},
    {"a flush is forgotten", R"(\n *flush [^\n]*)", ""},
    {"copies are forgotten", R"(,? copies: 2)", ""},
    {"a key is forgotten", R"((\w+)\[(\w)\]\.)", "$1."},
    {"an index is another rank's", R"(\[r\])", "[p]"},
    {"an index is another rank's, too", R"(\[p\])", "[r]"},
    {"a range is one too long", R"(R - 1)", "R"},
    {"an index is one too small", R"(s \+ 1)", "s"},
    {"a neighbour is on the other side", R"(\(r \+ 1\) % R)", "(r - 1) % R"},
    {"two lines are swapped", R"(\n( *[a-z]+ [^\n]*)\n( *(?:signal|wait) [^\n]*))", "\n$2\n$1"},
    {"a put of packets is plain", R"(\bput_packets\b)", "put"},
    {"a sum of packets is plain", R"(\breduce_packets\b)", "reduce"},
    {"packets are unpacked by copy", R"(\bunpack_packets\b)", "copy"},
    {"a buffer of packets is plain", R"( packets: \w+,)", ""},
    {"a wait is relaxed", R"((\n *wait [^\n#;]*[^\s#;])(?=\n))", "$1 relaxed"},
    {"a signal is relaxed", R"((\n *signal [^\n#;]*[^\s#;])(?=\n))", "$1 relaxed"},
    {"a channel is the other one", R"(\bsignal next\b)", "signal prev"},
    {"the rank itself is not left out", R"( except r\b)", ""},
    {"a brace is missing", R"(\n *\}(?=\n))", ""},
    {"an arrow is missing", R"( <-)", ""},
    {"a signal is sent twice", R"((\n *signal [^\n]*))", "$1$1"},
    {"a bracket is missing", R"(\](?= <-))", ""},
    {"the sides of an op are swapped", R"((copy|put) (\S+) <- (\w+(?:\[\w+\])?)(?=\n))",
     "$1 $3 <- $2"},
};

/// The bodies of ranks begin here.
size_t body_of(const std::string& text) {
  const size_t at = text.find("\nrank ");
  return at == std::string::npos ? text.size() : at;
}

std::vector<Fault> faults_in(const FaultKind& kind, const std::string& program,
                             const std::string& text) {
  const std::regex pattern(kind.pattern);
  const size_t body = body_of(text);
  std::vector<Fault> found;
  const std::sregex_iterator end;
  for (std::sregex_iterator i(text.begin() + body, text.end(), pattern); i != end; ++i) {
    const size_t at = body + i->position(0);
    const std::string changed =
        text.substr(0, at) + i->format(kind.replacement) + text.substr(at + i->length(0));
    found.push_back({kind.name, program, text, changed});
  }
  return found;
}

std::vector<std::string> programs() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("plans")) {
    if (entry.path().extension() == ".mscl") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

size_t fault_kinds() { return std::size(kKinds); }

std::vector<Fault> faults_of_kind(size_t kind) {
  const std::vector<std::string> names = programs();
  std::vector<std::vector<Fault>> by_program;
  for (size_t i = 0; i < names.size(); ++i) {  // each kind begins with another program
    const std::string& name = names[(i + 7 * kind) % names.size()];
    by_program.push_back(
        faults_in(kKinds[kind], name, read_file("plans/" + name + ".mscl").value()));
  }
  std::vector<Fault> found;
  size_t longest = 0;
  for (const auto& faults : by_program) longest = std::max(longest, faults.size());
  for (size_t turn = 0; turn < longest; ++turn) {
    for (const auto& faults : by_program) {
      if (turn < faults.size()) found.push_back(faults[turn]);
    }
  }
  return found;
}

}  // namespace mscclc::testing
