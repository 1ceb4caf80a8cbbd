#include "runtime/choice/proofs/proof_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "runtime/choice/proofs/claims.h"
#include "runtime/support/fd.h"

namespace mscclc {
namespace {

constexpr std::string_view kHead = "mscclc proof ";
/// Head, four digits of claims, a newline.
constexpr size_t kClaimDigits = 4, kEntryBytes = kHead.size() + kClaimDigits + 1;

constexpr std::pair<Variable, const char*> kSystemFolders[] = {
    {Variable::XDG_CACHE_HOME, "/mscclc/proofs"}, {Variable::HOME, "/.cache/mscclc/proofs"}};

/// The folder, if it is this user's and no other user may write there. Not valid: there is none, or
/// (warned) it is not.
Fd open_folder(const std::string& folder, Diagnostics& diagnostics) {
  Fd opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status {};
  if (!opened.valid() || fstat(opened.get(), &status) != 0) return {};
  if (status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0) return opened;
  diagnostics.warning("proof-cache", {},
                      fmt::format("the cache of proofs {} is not used: it is another user's, or "
                                  "others may write there",
                                  mscclc::quoted(folder)));
  return {};
}

}  // namespace

std::optional<ProofCache> ProofCache::open(const Environment& environment,
                                           Diagnostics& diagnostics) {
  if (environment.has(Variable::MSCCLC_PROOF_CACHE)) {
    const auto folder = environment.text(Variable::MSCCLC_PROOF_CACHE, diagnostics);
    return folder ? std::optional(ProofCache(*folder)) : std::nullopt;
  }
  Diagnostics of_others;  // what the system has set is no mistake of the job's
  for (const auto& [variable, below] : kSystemFolders) {
    const auto folder = environment.text(variable, of_others);
    if (folder && folder->starts_with('/')) return ProofCache(*folder + below, *folder);
  }
  return ProofCache("");
}

std::optional<Proof> ProofCache::find(const PlanDigest& digest, Diagnostics& diagnostics) const {
  if (folder_.empty()) return std::nullopt;
  const Fd folder = open_folder(folder_, diagnostics);
  if (!folder.valid()) return std::nullopt;
  // What is no file must not be waited for.
  const Fd file(
      openat(folder.get(), hex(digest).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  std::array<char, kEntryBytes> text{};
  if (!file.valid() || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_uid != geteuid() || status.st_size != static_cast<off_t>(text.size()) ||
      read(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return std::nullopt;
  }
  const std::string_view said(text.data(), text.size());
  unsigned claims = 0;
  if (!said.starts_with(kHead) || said.back() != '\n' ||
      std::sscanf(std::string(said.substr(kHead.size(), kClaimDigits)).c_str(), "%4x", &claims) !=
          1) {
    return std::nullopt;
  }
  return unpack(static_cast<uint16_t>(claims));
}

// Under another name first, so that half of it is never read.
void ProofCache::keep(const PlanDigest& digest, const Proof& proof) const {
  if (folder_.empty()) return;
  std::error_code none;
  if (!root_.empty() && !std::filesystem::is_directory(root_, none)) return;
  std::filesystem::create_directories(folder_, none);
  Diagnostics not_used;
  const Fd folder = open_folder(folder_, not_used);
  if (!folder.valid()) return;
  const std::string name = hex(digest), draft = fmt::format(".{}.{}", name, getpid());
  const std::string text = fmt::format("{}{:04x}\n", kHead, pack(proof));
  const Fd file(openat(folder.get(), draft.c_str(),
                       O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  const QuietWrites quiet;
  const bool written = file.valid() && write(file.get(), text.data(), text.size()) ==
                                           static_cast<ssize_t>(text.size());
  if (written && renameat(folder.get(), draft.c_str(), folder.get(), name.c_str()) == 0) return;
  if (file.valid()) unlinkat(folder.get(), draft.c_str(), 0);
}

}  // namespace mscclc
