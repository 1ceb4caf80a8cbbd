// The cache of kernels: what is found is what was kept, whole, by this user.
#include "runtime/devices/kernels/kernel_cache.h"

#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <thread>

#include "tests/helpers/files/made_up_folder.h"

namespace mscclc {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

/// A folder of a test's own; the cache makes its last part.
struct CacheHome {
  KernelCache cache(uint64_t most = KernelCache::kMaxBytes) const {
    return KernelCache({folder, root}, most);
  }
  fs::path file(const std::string& key) const { return folder / (key + ".kernels"); }
  /// Names of all that is there.
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& entry : fs::directory_iterator(folder)) all.insert(entry.path().filename());
    return all;
  }
  const testing::MadeUpFolder made;
  const fs::path root = made.path(), folder = root / "kernels";
};

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void replace(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

const std::string kImage = std::string("\177ELF\0\n", 6) + std::string(5000, 'i');

TEST_CASE("kernel cache: a key is of source, architecture, compiler and version") {
  const std::string key = kernel_key("source", "sm_90", "NVRTC 12.8");
  CHECK(key.size() == 64);
  CHECK(key == kernel_key("source", "sm_90", "NVRTC 12.8"));
  const std::set<std::string> others = {key,
                                        kernel_key("source ", "sm_90", "NVRTC 12.8"),
                                        kernel_key("source", "sm_100", "NVRTC 12.8"),
                                        kernel_key("source", "sm_90", "NVRTC 13.0"),
                                        kernel_key("source", "sm_90\nNVRTC 12.8", ""),
                                        kernel_key("source", "sm_90", "NVRTC 12.8", "0.0.9")};
  CHECK(others.size() == 6);
  CHECK(key == kernel_key("source", "sm_90", "NVRTC 12.8", kVersion));
}

TEST_CASE("kernel cache: what was kept is found, also by another cache of the folder") {
  const CacheHome home;
  const KernelCache cache = home.cache();
  const std::string key = kernel_key("a", "sm_90", "c");
  CHECK(!cache.find(key));
  REQUIRE(cache.keep(key, kImage));
  CHECK(cache.find(key) == kImage);
  CHECK(home.cache().find(key) == kImage);
  CHECK(!cache.find(kernel_key("b", "sm_90", "c")));
  REQUIRE(cache.keep(key, ""));  // replaces it
  CHECK(cache.find(key) == "");
  struct stat status {};
  REQUIRE(stat(home.folder.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
  CHECK(home.names() == std::set<std::string>{key + ".kernels"});
}

TEST_CASE("kernel cache: a file that is torn, changed or another key's is not found") {
  const CacheHome home;
  const KernelCache cache = home.cache();
  const std::string key = kernel_key("a", "sm_90", "c"), other = kernel_key("b", "sm_90", "c");
  REQUIRE(cache.keep(key, kImage));
  const std::string whole = text_of(home.file(key));
  for (const size_t bytes :
       {size_t{0}, size_t{10}, whole.find('\n'), whole.find('\n') + 1, whole.size() - 1}) {
    CAPTURE(bytes);
    replace(home.file(key), whole.substr(0, bytes));
    CHECK(!cache.find(key));
  }
  replace(home.file(key), whole + "x");
  CHECK(!cache.find(key));
  std::string changed = whole;
  changed.back() ^= 1;
  replace(home.file(key), changed);
  CHECK(!cache.find(key));
  fs::rename(home.file(key), home.file(other));
  replace(home.file(other), whole);
  CHECK(!cache.find(other));
  REQUIRE(cache.keep(key, kImage));  // as if nothing were there
  CHECK(cache.find(key) == kImage);
}

TEST_CASE("kernel cache: nothing that others may have written is found") {
  const CacheHome home;
  const KernelCache cache = home.cache();
  const std::string key = kernel_key("a", "sm_90", "c");
  REQUIRE(cache.keep(key, kImage));
  const auto allow = [](const fs::path& path, mode_t mode) {
    REQUIRE(chmod(path.c_str(), mode) == 0);
  };
  allow(home.file(key), 0620);
  CHECK(!cache.find(key));
  allow(home.file(key), 0602);
  CHECK(!cache.find(key));
  allow(home.file(key), 0644);
  CHECK(cache.find(key) == kImage);
  allow(home.folder, 0770);
  CHECK(!cache.find(key));
  const auto kept = cache.keep(key, kImage);
  REQUIRE(!kept);
  CHECK(kept.error() == "it is another user's, or others may write there");
  allow(home.folder, 0700);
  // A link to a file of the same content.
  fs::rename(home.file(key), home.root / "elsewhere");
  fs::create_symlink(home.root / "elsewhere", home.file(key));
  CHECK(!cache.find(key));
  fs::remove(home.file(key));
  REQUIRE(mkfifo(home.file(key).c_str(), 0600) == 0);  // is not waited for
  CHECK(!cache.find(key));
  if (geteuid() == 0) {
    fs::remove(home.file(key));
    REQUIRE(cache.keep(key, kImage));
    REQUIRE(chown(home.file(key).c_str(), 12345, 12345) == 0);
    CHECK(!cache.find(key));
    REQUIRE(cache.keep(key, kImage));
    REQUIRE(chown(home.folder.c_str(), 12345, 12345) == 0);
    CHECK(!cache.find(key));
    CHECK(!cache.keep(key, kImage));
  }
}

TEST_CASE("kernel cache: a folder that cannot be made or written keeps nothing") {
  const CacheHome home;
  const std::string key = kernel_key("a", "sm_90", "c");
  CHECK(!KernelCache({}).keep(key, kImage));
  CHECK(!KernelCache({}).find(key));
  CHECK_THAT(KernelCache({}).place(), Catch::Contains("HOME"));
  // The user's home is not there, or is a file.
  const auto none = KernelCache({home.root / "no/.cache/kernels", home.root / "no"});
  CHECK(!none.keep(key, kImage));
  CHECK(!fs::exists(home.root / "no"));
  replace(home.root / "file", "x");
  CHECK(!KernelCache({home.root / "file"}).keep(key, kImage));
  CHECK(!KernelCache({home.root / "file/kernels"}).keep(key, kImage));
  CHECK(!KernelCache({"/proc/kernels"}).keep(key, kImage));  // read-only, also for root
}

TEST_CASE("kernel cache: with too little room for a file, none is left") {
  const CacheHome home;
  const std::string key = kernel_key("a", "sm_90", "c");
  REQUIRE(home.cache().keep(key, "x"));
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit small{1000, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const auto kept = home.cache().keep(key, kImage);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  REQUIRE(!kept);
  CHECK_THAT(kept.error().text(), Catch::Contains("File too large"));
  CHECK(home.cache().find(key) == "x");
  CHECK(home.names() == std::set<std::string>{key + ".kernels"});
}

TEST_CASE("kernel cache: what was used longest ago makes room") {
  const CacheHome home;
  const std::string image(1000, 'x');
  const auto key = [](int i) { return kernel_key(std::to_string(i), "sm_90", "c"); };
  const auto age = [&](int i, int hours) {
    fs::last_write_time(home.file(key(i)),
                        fs::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  const KernelCache cache = home.cache(5000);  // four of them, with their heads
  for (int i = 0; i < 4; ++i) {
    REQUIRE(cache.keep(key(i), image));
    age(i, 10 - i);
  }
  CHECK(cache.find(key(0)) == image);  // used now
  std::ofstream(home.folder / "other") << "not ours";
  std::ofstream(home.folder / ".old.draft") << "x";
  fs::last_write_time(home.folder / ".old.draft",
                      fs::file_time_type::clock::now() - std::chrono::hours(30));
  std::ofstream(home.folder / ".new.draft") << "x";
  REQUIRE(cache.keep(key(4), image));
  CHECK(home.names() == std::set<std::string>{key(0) + ".kernels", key(3) + ".kernels",
                                              key(4) + ".kernels", "other", ".new.draft"});
}

TEST_CASE("kernel cache: processes that keep and find one key at once") {
  const CacheHome home;
  const std::string key = kernel_key("a", "sm_90", "c");
  const std::string images[] = {std::string(20000, 'a'), std::string(30000, 'b')};
  pid_t children[2];
  for (int c = 0; c < 2; ++c) {
    children[c] = fork();
    REQUIRE(children[c] >= 0);
    if (children[c] != 0) continue;
    bool right = true;
    for (int i = 0; i < 40; ++i) {
      right &= static_cast<bool>(home.cache().keep(key, images[c]));
      const auto found = home.cache().find(key);
      right &= found == images[0] || found == images[1];
    }
    _exit(right ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  CHECK(home.names() == std::set<std::string>{key + ".kernels"});
}

/// Names of the files that are made in a folder while `work` runs.
std::set<std::string> drafts_during(const fs::path& folder, const std::function<void()>& work) {
  const int watch = inotify_init1(IN_CLOEXEC);
  REQUIRE(watch >= 0);
  REQUIRE(inotify_add_watch(watch, folder.c_str(), IN_CREATE) >= 0);
  work();
  alignas(inotify_event) char events[65536];
  const ssize_t got = read(watch, events, sizeof events);
  close(watch);
  std::set<std::string> names;
  for (ssize_t at = 0; at < got;) {
    const auto* const event = reinterpret_cast<const inotify_event*>(events + at);
    names.insert(event->name);
    at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
  }
  return names;
}

// Containers that share a home have processes of one number: their drafts are apart all the same.
TEST_CASE("kernel cache: each draft has a name of its own") {
  const CacheHome home;
  const std::string key = kernel_key("a", "sm_90", "c");
  REQUIRE(home.cache().keep(key, kImage));
  const auto drafts = drafts_during(home.folder, [&] {
    for (int i = 0; i < 20; ++i) CHECK(home.cache().keep(key, kImage));
  });
  CHECK(drafts.size() == 20);
  for (const std::string& name : drafts) CHECK(name.size() == 1 + key.size() + 1 + 32);
}

TEST_CASE("kernel cache: one has its turn, others wait, give up or are done") {
  const CacheHome home;
  const std::string key = kernel_key("a", "sm_90", "c");
  const auto never = [] { return false; };
  std::atomic<bool> second{false};
  std::thread other;
  {
    const auto first = home.cache().take_turn(key, milliseconds(0), never);
    CHECK(home.names().size() == 1);
    int asked = 0;
    (void)home.cache().take_turn(key, milliseconds(60'000), [&] { return ++asked == 3; });
    CHECK(asked == 3);
    (void)home.cache().take_turn(key, milliseconds(0), never);  // gives up
    other = std::thread([&] {
      const auto turn = home.cache().take_turn(key, milliseconds(60'000), never);
      second = true;
    });
    CHECK(!second);
  }
  other.join();
  CHECK(second);
  CHECK(home.names().empty());
}

}  // namespace
}  // namespace mscclc
