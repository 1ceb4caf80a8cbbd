#include "runtime/choice/registry/folder_table.h"

#include <fmt/format.h>

#include <filesystem>

#include "runtime/choice/registry/read_checked.h"

namespace mscclc {
namespace {

constexpr const char* kTable = "library.json";

std::string remedy(const LibraryCall& call) {
  return fmt::format("'mscclc library --ranks {} -o FOLDER' writes plans for {} ranks", call.ranks,
                     call.ranks);
}

/// The kind of calls that a plan is for.
LibraryCall calls_of(const Contract& contract) {
  return {.kind = contract.kind,
          .ranks = contract.ranks,
          .root = contract.root,
          .shift = contract.shift};
}

bool same_kind(const Contract& contract, const LibraryCall& call) {
  return contract.then == Contract::kNoFunction && contract.kind == call.kind &&
         contract.ranks == call.ranks && (!has_root(call.kind) || contract.root == call.root) &&
         (call.kind != CollectiveKind::sendrecv ||
          receiver_of_0(contract.shift, call.ranks) == receiver_of_0(call.shift, call.ranks));
}

// A row says whether its plan is right in place, but not that it is right in place only: pick()
// passes over such a plan for other calls.
bool takes(const Program& plan, const LibraryCall& call) {
  if (!plan.flags.empty()) return false;  // requests have no flags to give
  const std::vector<Dtype>& dtypes = plan.select.dtypes;
  if (!dtypes.empty() && std::ranges::find(dtypes, call.dtype) == dtypes.end()) return false;
  return !call.in_place || !plan.contract.can_alias() || plan.contract.in_place != InPlace::no;
}

}  // namespace

bool FolderTable::is_there(const std::string& folder) {
  std::error_code none;
  return std::filesystem::exists(folder + "/" + kTable, none);
}

std::unique_ptr<FolderTable> FolderTable::open(const std::string& folder, ProofPolicy policy,
                                               Diagnostics& diagnostics) {
  std::string place = folder;
  if (!place.ends_with('/')) place += '/';
  const auto text =
      read_named(place + kTable, "no-registry",
                 fmt::format("'mscclc library --ranks N -o {}' writes a folder of plans", folder),
                 diagnostics);
  if (!text) return nullptr;
  auto table = LibraryTable::parse(*text, place + kTable, diagnostics);
  if (!table) return nullptr;
  std::unique_ptr<FolderTable> made(new FolderTable(*std::move(table), std::move(place), policy));
  return made->check_files(diagnostics) ? std::move(made) : nullptr;
}

// A file that is not there is reported when a job starts, not at the first call that needs it.
bool FolderTable::check_files(Diagnostics& diagnostics) const {
  const auto fail = [&](std::string message, std::string remedy) {
    diagnostics.error("no-registry", {}, std::move(message))
        .notes.push_back({.text = std::move(remedy)});
    return false;
  };
  for (const LibraryRow& row : table().rows()) {
    const LibraryChoice& choice = row.choice;
    if (choice.plan.empty()) {
      return fail(
          fmt::format("'{}{}' names programs, not plans", place(), kTable),
          fmt::format("'mscclc library --library {} --ranks N -o FOLDER' compiles them", place()));
    }
    std::error_code none;
    if (std::filesystem::is_regular_file(place() + choice.plan, none)) continue;
    return fail(fmt::format("'{}{}' names '{}', which is not there", place(), kTable, choice.plan),
                "the folder must be copied whole");
  }
  return true;
}

std::string FolderTable::name_of(const LibraryRow& row, const LibraryCall&) const {
  return place() + row.choice.plan;
}

TableProvider::RowPlan FolderTable::plan_of(const LibraryRow& row, const PlanRequest& request,
                                            Diagnostics& diagnostics) {
  const std::lock_guard lock(mutex_);
  const auto key = std::pair(row.choice.plan, request.call.nodes);  // max_bytes() asks for both
  auto found = plans_.find(key);
  if (found == plans_.end()) {
    const std::string path = place() + row.choice.plan;
    const auto text =
        read_named(path, "cannot-read", "the folder must be copied whole", diagnostics);
    auto made = text ? read_checked_plan(*text, path, policy_, diagnostics) : nullptr;
    if (made == nullptr) return {};
    made->picked.file = path;
    made->picked.max_bytes = max_bytes(row.choice, request.call);
    made->picked.why = fmt::format("the first row of '{}{}' that fits", place(), kTable);
    found = plans_.emplace(key, std::move(made)).first;
  }
  // Each time: other rows may name the same file.
  if (!check_plan(*found->second, request, diagnostics)) return {};
  return {found->second};
}

bool FolderTable::check_plan(const CheckedPlan& checked, const PlanRequest& request,
                             Diagnostics& diagnostics) const {
  const Program& plan = *checked.picked.plan;
  const LibraryCall& call = request.call;
  if (same_kind(plan.contract, call) && takes(plan, call)) return true;
  const std::string why = same_kind(plan.contract, call)
                              ? fmt::format("it is not for {}{}", info(call.dtype).name,
                                            call.in_place ? " in place" : " out of place")
                              : fmt::format("it is for {}", call_text(calls_of(plan.contract)));
  diagnostics
      .error("wrong-plan", {},
             fmt::format("'{}{}' picks '{}' for {}, but {}", place(), kTable, checked.picked.name,
                         call_text(call), why))
      .notes.push_back({.text = remedy(call)});
  return false;
}

}  // namespace mscclc
