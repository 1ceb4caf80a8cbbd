// Writes the table of known plans (known_plans.cc): the digest and the claims of every plan of a
// folder that `mscclc library` has just compiled and proved. Part of the build.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <map>

#include "ir/support/read_file.h"
#include "runtime/choice/proofs/claims.h"
#include "runtime/choice/proofs/plan_digest.h"

namespace mscclc {
namespace {

using Table = std::map<PlanDigest, uint16_t>;

bool add(const std::filesystem::path& file, Table& table, Diagnostics& diagnostics) {
  const auto text = read_file(file);
  if (!text) {
    diagnostics.error("cannot-read", {},
                      fmt::format("cannot read '{}': {}", file.string(), file_error(errno)));
    return false;
  }
  std::optional<ProofRecord> record;
  const auto plan = read_shared_plan(*text, file.string(), diagnostics, &record);
  if (!plan) return false;
  if (!record) {
    diagnostics.error("no-proof", {}, fmt::format("'{}' carries no proof", file.string()));
    return false;
  }
  const auto digest = plan_digest(plan, diagnostics);
  if (digest) table[*digest] = pack(record->proof);
  return digest.has_value();
}

int run(const char* folder) {
  Table table;
  Diagnostics diagnostics;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto& file = entry.path();
    if (file.extension() != ".json" || file.filename() == "library.json") continue;
    if (add(file, table, diagnostics)) continue;
    fmt::print(stderr, "{}", render_text(diagnostics, Sources(), 10));
    return 1;
  }
  for (const auto& [digest, claims] : table) {
    fmt::print("{{{{");
    for (const uint8_t byte : digest) fmt::print("{},", byte);
    fmt::print("}},{}}},\n", claims);
  }
  return table.empty() ? 1 : 0;
}

}  // namespace
}  // namespace mscclc

int main(int argc, char** argv) {
  if (argc == 2) return mscclc::run(argv[1]);
  fmt::print(stderr, "make_known_plans FOLDER\n");
  return 2;
}
