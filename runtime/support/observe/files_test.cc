// Files that this user's processes leave, and what others may have put in their place.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>

#include "runtime/support/observe/log_output.h"
#include "runtime/support/observe/old_files.h"
#include "tests/helpers/files/made_up_folder.h"

namespace mscclc {
namespace {

/// A file that was last written then.
void write_old(const testing::MadeUpFolder& folder, const std::string& name, time_t time) {
  const timespec times[2] = {{time, 0}, {time, 0}};
  ::utimensat(AT_FDCWD, folder.write(name, "kept").c_str(), times, 0);
}

TEST_CASE("only this user may read a new log") {
  const testing::MadeUpFolder folder;
  const ::mode_t before = ::umask(0);
  CHECK(open_log(folder.file("log")).valid());
  ::umask(before);
  struct stat status {};
  REQUIRE(::stat(folder.file("log").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
}

TEST_CASE("links of this user and of the system are followed by a log, others are not") {
  const testing::MadeUpFolder folder;
  folder.write("aim", "kept");
  REQUIRE(::symlink(folder.file("aim").c_str(), folder.file("link").c_str()) == 0);
  CHECK(open_log("/dev/stderr").valid() == (::access("/dev/stderr", W_OK) == 0));
  if (::geteuid() == 0) {
    REQUIRE(::lchown(folder.file("link").c_str(), 65534, 65534) == 0);
    CHECK_FALSE(open_log(folder.file("link")).valid());
    CHECK(describe_log_error(errno) == "it is a link that another user has made");
    CHECK(std::filesystem::file_size(folder.file("aim")) == 4);
    REQUIRE(::lchown(folder.file("link").c_str(), 0, 0) == 0);
  } else {
    WARN("only root can make another user's link: not tried");
  }
  CHECK(open_log(folder.file("link")).valid());
  CHECK(std::filesystem::file_size(folder.file("aim")) == 0);
}

TEST_CASE("a folder keeps the newest files of a kind") {
  const testing::MadeUpFolder folder;
  for (int i = 0; i < 9; ++i) write_old(folder, "ours-" + std::to_string(i), 1000 + (i * 5) % 9);
  write_old(folder, "other", 1);
  REQUIRE(::symlink("other", folder.file("ours-link").c_str()) == 0);
  const auto is_ours = [](std::string_view name) { return name.starts_with("ours-"); };
  drop_old_files(folder.path(), is_ours, 9);
  CHECK(std::filesystem::exists(folder.file("ours-0")));
  drop_old_files(folder.path(), is_ours, 3);
  for (int i = 0; i < 9; ++i) {
    INFO(i);
    CHECK(std::filesystem::exists(folder.file("ours-" + std::to_string(i))) == ((i * 5) % 9 >= 6));
  }
  CHECK(std::filesystem::exists(folder.file("other")));
  CHECK(std::filesystem::is_symlink(folder.file("ours-link")));
  drop_old_files(folder.file("none"), is_ours, 0);
}

}  // namespace
}  // namespace mscclc
