// Notices that files have changed: by looking at them, so that it works for editors that replace a
// file, for symbolic links, and on file systems that notify no one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mscclc {

/// A file, and the text that was read from it.
struct ReadFile {
  std::string path, text;
};

class FileChanges {
 public:
  /// From now on these files are watched. A change counts since a file was watched first, or, if it
  /// was not watched before, since its text was read.
  void watch(const std::vector<ReadFile>& files);
  /// True once after a change: when files that have changed stayed as they are since the last call,
  /// as an editor may still be writing, and none is missing.
  [[nodiscard]] bool settled();
  /// The first file that is not there, or has become a pipe, which may never have a writer;
  /// empty: all are there.
  const std::string& missing() const { return missing_; }

 private:
  /// What distinguishes one content of a file from another, without reading it.
  struct State {
    bool there = false;
    uint64_t device = 0, inode = 0, bytes = 0;
    int64_t seconds = 0, nanoseconds = 0;  ///< when it was written
    bool operator==(const State&) const = default;
  };
  static State state_of(const std::string& path);
  /// That of a file while it has this text; if it no longer has it, one that no file has.
  static State state_of_text(const ReadFile& file);
  using States = std::map<std::string, State>;  ///< by path
  States states() const;

  States known_, last_;
  std::string missing_;
};

}  // namespace mscclc
