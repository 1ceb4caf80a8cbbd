#include "tools/watch/file_changes.h"

#include <sys/stat.h>

#include <utility>

#include "ir/support/read_file.h"

namespace mscclc {

FileChanges::State FileChanges::state_of(const std::string& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  return {true,
          info.st_dev,
          info.st_ino,
          static_cast<uint64_t>(info.st_size),
          info.st_mtim.tv_sec,
          info.st_mtim.tv_nsec};
}

FileChanges::States FileChanges::states() const {
  States now;
  for (const auto& [path, state] : known_) now[path] = state_of(path);
  return now;
}

FileChanges::State FileChanges::state_of_text(const ReadFile& file) {
  const State state = state_of(file.path);
  const auto text = read_file(file.path, std::nullopt);
  return text && *text == file.text ? state : State{};
}

void FileChanges::watch(const std::vector<ReadFile>& files) {
  States known;
  for (const ReadFile& file : files) {
    const auto before = known_.find(file.path);
    known[file.path] = before != known_.end() ? before->second : state_of_text(file);
  }
  known_ = std::move(known);
  last_ = states();
  missing_.clear();
}

bool FileChanges::settled() {
  States now = states();
  const bool stays = now == last_;
  last_ = now;
  missing_.clear();
  for (const auto& [path, state] : now) {
    if (!state.there && missing_.empty()) missing_ = path;
  }
  if (!stays || now == known_ || !missing_.empty()) return false;
  known_ = std::move(now);
  return true;
}

}  // namespace mscclc
