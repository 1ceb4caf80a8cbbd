#include "runtime/choice/proofs/proof_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>

#include "ir/support/precondition.h"
#include "runtime/choice/proofs/claims.h"
#include "runtime/support/fd.h"

namespace mscclc {
namespace {

constexpr std::string_view kHead = "mscclc proof ";
/// Head, four digits of claims, a newline.
constexpr size_t kClaimDigits = 4, kEntryBytes = kHead.size() + kClaimDigits + 1;

/// The folder, if it is this user's and no other user may write there. Not valid: there is none, or
/// (warned) it is not.
Fd open_folder(const std::string& folder, Diagnostics& diagnostics) {
  auto opened = open_own_folder(folder);
  if (opened) return *std::move(opened);
  if (opened.error() == kNotOwn) {
    diagnostics.warning("proof-cache", {},
                        fmt::format("the cache of proofs {} is not used: {}",
                                    mscclc::quoted(folder), opened.error().message));
  }
  return {};
}

}  // namespace

std::optional<ProofCache> ProofCache::open(const Environment& environment,
                                           Diagnostics& diagnostics) {
  auto folder = cache_folder(environment, Variable::MSCCLC_PROOF_CACHE, "proofs", diagnostics);
  if (!folder) return std::nullopt;
  return ProofCache(*std::move(folder));
}

std::optional<Proof> ProofCache::find(const PlanDigest& digest, Diagnostics& diagnostics) const {
  if (folder_.path.empty()) return std::nullopt;
  const Fd folder = open_folder(folder_.path, diagnostics);
  if (!folder.valid()) return std::nullopt;
  const Fd file = open_own_file(folder, hex(digest));
  struct stat status {};
  std::array<char, kEntryBytes> text{};
  if (!file.valid() || fstat(file.get(), &status) != 0 ||
      status.st_size != static_cast<off_t>(text.size()) ||
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
  precondition(proof.proved);
  const auto opened = make_own_folder(folder_);
  if (!opened) return;
  const Fd& folder = *opened;
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
