// A fake libnvrtc: its "cubin" is one that the fake driver takes (tests/fakes/cuda/fake_modules.h),
// with the names of the source's kernels, and after them what it was given. Source with the word
// "broken" has an error.
#include <cstddef>
#include <cstring>
#include <string>

namespace {

struct Given {
  std::string source, given, log, architecture, digest;
};

Given* of(void* program) { return static_cast<Given*>(program); }

/// What stands between two texts, from `at` on; `at` is after it then.
std::string between(const std::string& text, const std::string& before, const std::string& after,
                    size_t& at) {
  const size_t begin = text.find(before, at);
  if (begin == std::string::npos) return "";
  const size_t end = text.find(after, begin + before.size());
  at = end;
  return text.substr(begin + before.size(), end - begin - before.size());
}

/// "mscclc_PLAN_SHAPE_TYPE_DIGEST" for each "MSCCLC_KERNEL(PLAN, SHAPE, TYPE)(".
std::string kernel_names(const Given& of) {
  std::string names;
  for (size_t at = 0;;) {
    std::string words = between(of.source, "\nMSCCLC_KERNEL(", ")(", at);
    if (words.empty()) return names;
    for (size_t comma = words.find(", "); comma != std::string::npos; comma = words.find(", ")) {
      words.replace(comma, 2, "_");
    }
    names += "mscclc_" + words + "_" + of.digest + "\n";
  }
}

/// A cubin without segments and sections.
std::string cubin_of(const Given& of) {
  std::string cubin("\177ELF\2\1\1", 7);
  cubin.resize(64);
  cubin[18] = static_cast<char>(190);
  return cubin + of.architecture + "\n" + kernel_names(of) + of.given;
}

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) {
  *major = 12;
  *minor = 99;
  return 0;
}

int nvrtcCreateProgram(void** program, const char* source, const char* name, int headers,
                       const char* const* texts, const char* const* names) {
  auto* made = new Given;
  made->source = source;
  made->given = std::string(name) + ":\n" + source;
  for (int i = 0; i < headers; ++i) {
    size_t at = 0;
    if (i == 0) made->digest = between(texts[i], "_##arithmetic##_", "\n", at);
    made->given += std::string("header ") + names[i] + (texts[i][0] == '\0' ? ", empty\n" : "\n");
  }
  *program = made;
  return 0;
}

int nvrtcCompileProgram(void* program, int options, const char* const* words) {
  for (int i = 0; i < options; ++i) of(program)->given += std::string(words[i]) + "\n";
  of(program)->architecture = std::string(words[options - 1]);
  of(program)->architecture.erase(0, of(program)->architecture.find('=') + 1);
  if (of(program)->given.find("broken") == std::string::npos) return 0;
  of(program)->log = "kernels.cu(1): error: broken";
  return 6;
}

int nvrtcGetProgramLogSize(void* program, size_t* size) {
  *size = of(program)->log.size() + 1;
  return 0;
}
int nvrtcGetProgramLog(void* program, char* log) {
  std::memcpy(log, of(program)->log.c_str(), of(program)->log.size() + 1);
  return 0;
}
int nvrtcGetCUBINSize(void* program, size_t* size) {
  *size = cubin_of(*of(program)).size();
  return 0;
}
int nvrtcGetCUBIN(void* program, char* cubin) {
  const std::string made = cubin_of(*of(program));
  std::memcpy(cubin, made.data(), made.size());
  return 0;
}
int nvrtcDestroyProgram(void** program) {
  delete of(*program);
  *program = nullptr;
  return 0;
}
const char* nvrtcGetErrorString(int result) {
  return result == 6 ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR";
}

}  // extern "C"
