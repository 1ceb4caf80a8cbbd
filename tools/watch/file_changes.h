// Notices that files have changed: by looking at them, so that it works for editors that replace a
// file, for symbolic links, and on file systems that notify no one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mscclc {

class FileChanges {
 public:
  /// From now on these files are watched. Of one that was watched before, a change since then
  /// counts; of others their state is what it is now.
  void watch(const std::vector<std::string>& paths);
  /// True once after a change: when files that have changed stayed as they are since the last call,
  /// as an editor may still be writing, and none is missing.
  [[nodiscard]] bool settled();
  /// The first file that is not there; empty: all are.
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
  using States = std::map<std::string, State>;  ///< by path
  States states() const;

  States known_, last_;
  std::string missing_;
};

}  // namespace mscclc
