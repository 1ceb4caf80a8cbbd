// Files as text, read to their end: what never ends, or is larger than any input of ours, is an
// error, not the end of the machine's memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace mscclc {

/// The largest file that is read. Plans of 256 ranks have 60 MB.
inline constexpr uint64_t kMaxFileBytes = uint64_t{256} << 20;

/// Reads what is left of a descriptor. nullopt: errno says why; EFBIG: there is more than
/// kMaxFileBytes.
[[nodiscard]] std::optional<std::string> read_to_end(int fd);
/// How long a named pipe may have no writer.
inline constexpr std::chrono::milliseconds kWriterPatience{5000};
/// The same for a path. Of a pipe with a writer it waits for the end, as cat
/// does. errno ETIMEDOUT: no writer for so long. Without any patience only a regular file is
/// read, which cannot be made to last; errno ESPIPE: it is none.
[[nodiscard]] std::optional<std::string> read_file(
    const std::string& path, std::optional<std::chrono::milliseconds> patience = kWriterPatience);
/// What errno says of a file that could not be read: "No such file or directory", "it has more than
/// 256 MiB, or does not end", "it is a pipe with no writer", "it is a pipe or a device,
/// no file".
std::string file_error(int error);

}  // namespace mscclc
