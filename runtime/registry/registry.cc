#include "runtime/api/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>

#include "ir/program.h"
#include "ir/read_file.h"
#include "plans/library_table.h"
#include "plans/plan_json.h"
#include "plans/proof_record.h"
#include "runtime/base/environment.h"
#include "runtime/observe/log.h"
#include "runtime/proofs/check_proof.h"
#include "runtime/proofs/policy.h"

namespace mscclc {
namespace {

constexpr const char* kTable = "library.json";

/// Nothing after reporting `code`.
std::optional<std::string> read_text(const std::string& path, const char* code, std::string remedy,
                                     Diagnostics& diagnostics) {
  std::optional<std::string> text = read_whole_file(path);
  if (text) return text;
  diagnostics.error(code, {}, fmt::format("cannot read '{}': {}", path, file_error(errno)))
      .notes.push_back({.text = std::move(remedy)});
  return std::nullopt;
}

/// "allreduce over 4 ranks", "broadcast over 4 ranks with root 2"
std::string call_text(const LibraryCall& call) {
  std::string text = fmt::format("{} over {} ranks", name(call.kind), call.ranks);
  if (has_root(call.kind)) text += fmt::format(" with root {}", call.root);
  if (call.kind == CollectiveKind::sendrecv) text += fmt::format(" with shift {}", call.shift);
  return text;
}

/// The kind of calls that a plan is for.
LibraryCall calls_of(const Contract& contract) {
  return {.kind = contract.kind,
          .ranks = contract.ranks,
          .root = contract.root,
          .shift = contract.shift};
}

std::string remedy(const LibraryCall& call) {
  return fmt::format("'mscclc library --ranks {} -o FOLDER' writes plans for {} ranks", call.ranks,
                     call.ranks);
}

bool same_shift(const Contract& contract, const LibraryCall& call) {
  return call.kind != CollectiveKind::sendrecv || (contract.shift - call.shift) % call.ranks == 0;
}

bool same_kind(const Contract& contract, const LibraryCall& call) {
  return contract.kind == call.kind && contract.ranks == call.ranks &&
         (!has_root(call.kind) || contract.root == call.root) && same_shift(contract, call);
}

bool takes(const Program& plan, const LibraryCall& call) {
  const std::vector<Dtype>& dtypes = plan.select.dtypes;
  if (!dtypes.empty() && std::ranges::find(dtypes, call.dtype) == dtypes.end()) return false;
  const InPlace wanted = call.in_place ? InPlace::yes : InPlace::no;
  return !plan.contract.can_alias() || plan.contract.in_place == InPlace::either ||
         plan.contract.in_place == wanted;
}

}  // namespace

struct Registry::State {
  [[nodiscard]] bool check_files(Diagnostics& diagnostics) const;
  const Choice* read(const LibraryChoice& choice, const LibraryCall& call,
                     Diagnostics& diagnostics);
  [[nodiscard]] bool prove(Choice& choice, const std::optional<ProofRecord>& claimed,
                           Diagnostics& diagnostics) const;
  [[nodiscard]] bool check_plan(const Program& plan, const std::string& file,
                                const LibraryCall& call, Diagnostics& diagnostics) const;

  std::string folder;  ///< with a '/' at its end
  LibraryTable table;
  ProofPolicy policy;
  std::map<std::string, Choice> plans = {};  ///< that have been read, by name of the file
};

Registry::Registry(std::unique_ptr<State> state) : state_(std::move(state)) {}
Registry::~Registry() = default;
Registry::Registry(Registry&&) noexcept = default;
Registry& Registry::operator=(Registry&&) noexcept = default;
const LibraryTable& Registry::table() const { return state_->table; }

std::optional<Registry> Registry::open(const std::string& folder, Diagnostics& diagnostics,
                                       std::optional<ProofPolicy> proof) {
  const Environment environment = Environment::of_process();
  const auto policy = proof_policy(proof, environment, diagnostics);
  // A registry may come before any communicator, and what it skips is logged.
  if (!policy || !start_log(environment, diagnostics)) return std::nullopt;
  std::string place = folder;
  if (!place.ends_with('/')) place += '/';
  const auto text =
      read_text(place + kTable, "no-registry",
                fmt::format("'mscclc library --ranks N -o {}' writes a folder of plans", folder),
                diagnostics);
  if (!text) return std::nullopt;
  auto table = LibraryTable::parse(*text, place + kTable, diagnostics);
  if (!table) return std::nullopt;
  auto state = std::make_unique<State>(State{std::move(place), *std::move(table), *policy});
  if (!state->check_files(diagnostics)) return std::nullopt;
  return Registry(std::move(state));
}

// A file that is not there is told when a job starts, not at the first call that needs it.
bool Registry::State::check_files(Diagnostics& diagnostics) const {
  const auto fail = [&](std::string message, std::string remedy) {
    diagnostics.error("no-registry", {}, std::move(message))
        .notes.push_back({.text = std::move(remedy)});
    return false;
  };
  for (const LibraryRow& row : table.rows()) {
    const LibraryChoice& choice = row.choice;
    if (choice.plan.empty()) {
      return fail(
          fmt::format("'{}{}' names programs, not plans", folder, kTable),
          fmt::format("'mscclc library --library {} --ranks N -o FOLDER' compiles them", folder));
    }
    std::error_code none;
    if (std::filesystem::is_regular_file(folder + choice.plan, none)) continue;
    return fail(fmt::format("'{}{}' names '{}', which is not there", folder, kTable, choice.plan),
                "the folder must be copied whole");
  }
  return true;
}

const Registry::Choice* Registry::choose(const LibraryCall& call, Diagnostics& diagnostics) {
  const LibraryChoice* choice = call.ranks == 0 ? nullptr : state_->table.choose(call);
  if (choice != nullptr) return state_->read(*choice, call, diagnostics);
  diagnostics
      .error("no-plan", {},
             fmt::format("'{}' has no plan of {}", state_->folder + kTable, call_text(call)))
      .notes.push_back({.text = remedy(call)});
  return nullptr;
}

const Registry::Choice* Registry::State::read(const LibraryChoice& choice, const LibraryCall& call,
                                              Diagnostics& diagnostics) {
  const std::string path = folder + choice.plan;
  auto found = plans.find(choice.plan);
  if (found == plans.end()) {
    const auto text =
        read_text(path, "cannot-read", "the folder must be copied whole", diagnostics);
    if (!text) return nullptr;
    std::optional<ProofRecord> claimed;
    auto plan = read_plan(*text, path, diagnostics, &claimed);
    if (!plan) return nullptr;
    Choice made{path, std::make_shared<const Program>(*std::move(plan)), 0, {}};
    if (!prove(made, claimed, diagnostics)) return nullptr;
    for (const LibraryRow& row : table.rows()) {
      if (row.choice == choice) made.max_bytes = std::max(made.max_bytes, row.bytes);
    }
    found = plans.emplace(choice.plan, std::move(made)).first;
  }
  // Each time: other rows may name the same file.
  if (!check_plan(*found->second.plan, path, call, diagnostics)) return nullptr;
  return &found->second;
}

bool Registry::State::prove(Choice& choice, const std::optional<ProofRecord>& claimed,
                            Diagnostics& diagnostics) const {
  if (policy == ProofPolicy::skip) {
    warn_of_skipped(fmt::format("'{}'", choice.file), std::nullopt, diagnostics);
    return true;
  }
  const auto digest = plan_digest(*choice.plan, diagnostics);
  if (!digest) return false;
  choice.proof = check_proof(*choice.plan, *digest, Environment::of_process(), diagnostics);
  return choice.proof && (!claimed || check_claims(choice.file, *choice.plan, *claimed,
                                                   *choice.proof, diagnostics));
}

bool Registry::State::check_plan(const Program& plan, const std::string& file,
                                 const LibraryCall& call, Diagnostics& diagnostics) const {
  if (same_kind(plan.contract, call) && takes(plan, call)) return true;
  const std::string why = same_kind(plan.contract, call)
                              ? fmt::format("it is not for {}{}", info(call.dtype).name,
                                            call.in_place ? " in place" : " out of place")
                              : fmt::format("it is for {}", call_text(calls_of(plan.contract)));
  diagnostics
      .error("wrong-plan", {},
             fmt::format("'{}{}' picks '{}' for {}, but {}", folder, kTable, file, call_text(call),
                         why))
      .notes.push_back({.text = remedy(call)});
  return false;
}

}  // namespace mscclc
