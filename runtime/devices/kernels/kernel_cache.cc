#include "runtime/devices/kernels/kernel_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <thread>
#include <vector>

#include "ir/diagnostics/printable.h"
#include "ir/support/read_file.h"
#include "runtime/support/fd.h"
#include "runtime/support/fixed_times.h"
#include "runtime/support/observe/new_file.h"
#include "runtime/support/sha256.h"

namespace mscclc {
namespace {

constexpr std::string_view kSuffix = ".kernels";
/// What crashed processes leave: drafts and locks, whose names begin with a dot.
constexpr time_t kOldDraft = 24 * 60 * 60;

std::string hex_digest(std::string_view text) {
  const Digest digest = sha256({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  std::string hex;
  for (const uint8_t byte : digest) hex += fmt::format("{:02x}", byte);
  return hex;
}

std::string head_of(const std::string& key, std::string_view image) {
  return fmt::format("mscclc kernels 1 {} {} {}\n", key, image.size(), hex_digest(image));
}

/// Writes all of it, to the disk. errno says why not.
bool write_durably(const Fd& file, std::string_view text) {
  return write_fully(file, text) && ::fsync(file.get()) == 0;
}

/// No process has a draft of this name: two containers with one home may have processes of one
/// number.
std::string draft_of(const std::string& key) {
  std::array<uint8_t, 16> random;
  fill_random(random);
  return fmt::format(".{}.{:02x}", key, fmt::join(random, ""));
}

struct CachedFile {
  std::string name;
  time_t used;
  uint64_t bytes;
};

/// The files of a folder. Nothing is said of those that go meanwhile.
std::vector<CachedFile> files_of(const Fd& folder) {
  std::vector<CachedFile> files;
  const int again = ::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const entries = again < 0 ? nullptr : ::fdopendir(again);
  if (entries == nullptr) {
    if (again >= 0) ::close(again);
    return files;
  }
  while (const dirent* entry = ::readdir(entries)) {
    struct stat status {};
    if (::fstatat(folder.get(), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISREG(status.st_mode)) continue;
    files.push_back({entry->d_name, status.st_mtime, static_cast<uint64_t>(status.st_size)});
  }
  ::closedir(entries);
  return files;
}

}  // namespace

std::string kernel_key(const std::string& source, const std::string& architecture,
                       const std::string& compiler, const std::string& version) {
  return hex_digest(
      fmt::format("{}\n{}\n{}\n{}\n{}", version, architecture, compiler, source.size(), source));
}

std::optional<std::string> KernelCache::find(const std::string& key) const {
  if (folder_.path.empty()) return std::nullopt;
  const auto folder = open_own_folder(folder_.path);
  if (!folder) return std::nullopt;
  const Fd file = open_own_file(*folder, key + std::string(kSuffix));
  if (!file.valid()) return std::nullopt;
  auto text = read_to_end(file.get());
  if (!text) return std::nullopt;
  const std::string_view all = *text;
  const size_t end = all.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view image = all.substr(end + 1);
  if (all.substr(0, end + 1) != head_of(key, image)) return std::nullopt;
  (void)::futimens(file.get(), nullptr);  // it was used now
  return std::string(image);
}

Result<void> KernelCache::keep(const std::string& key, const std::string& image) const {
  const auto folder = make_own_folder(folder_);
  if (!folder) return folder.error();
  const std::string name = key + std::string(kSuffix);
  const std::string draft = draft_of(key);
  const int at = folder->get();
  const Fd file(
      ::openat(at, draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return Error{error_text(errno)};
  if (write_durably(file, head_of(key, image) + image) &&
      ::renameat(at, draft.c_str(), at, name.c_str()) == 0) {
    (void)::fsync(at);
    make_room(*folder);
    return {};
  }
  const int error = errno;
  (void)::unlinkat(at, draft.c_str(), 0);
  return Error{error_text(error)};
}

void KernelCache::make_room(const Fd& folder) const {
  std::vector<CachedFile> files = files_of(folder);
  std::ranges::sort(files, {}, &CachedFile::used);
  uint64_t bytes = 0;
  for (const CachedFile& file : files) bytes += file.bytes;
  const bool full = bytes > most_bytes_;
  const time_t now = ::time(nullptr);
  for (const CachedFile& file : files) {
    const bool draft = file.name.starts_with('.');
    const bool goes = draft ? file.used + kOldDraft < now
                            : full && bytes > most_bytes_ / 4 * 3 && file.name.ends_with(kSuffix);
    if (goes && ::unlinkat(folder.get(), file.name.c_str(), 0) == 0) bytes -= file.bytes;
  }
}

// Not before it is unlocked: whichever process has waited for it looks whether the kernels are
// here.
KernelCache::KeyTurn::~KeyTurn() {
  if (file_.valid()) (void)::unlinkat(folder_.get(), name_.c_str(), 0);
}

KernelCache::KeyTurn KernelCache::take_turn(const std::string& key,
                                            std::chrono::milliseconds patience,
                                            const std::function<bool()>& over) const {
  auto folder = make_own_folder(folder_);
  if (!folder) return {};
  std::string name = fmt::format(".{}.turn", key);
  Fd file(::openat(folder->get(), name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return {};
  const auto end = std::chrono::steady_clock::now() + patience;
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK || over() || std::chrono::steady_clock::now() > end) return {};
    std::this_thread::sleep_for(kAskAgain);
  }
  return KeyTurn(*std::move(folder), std::move(file), std::move(name));
}

std::string KernelCache::place() const {
  return folder_.path.empty() ? "nowhere (neither XDG_CACHE_HOME nor HOME is set)"
                              : "in " + quoted(folder_.path, folder_.path.size());
}

}  // namespace mscclc
