// A fake libnvrtc: its "cubin" is what it was given. Source with the word "broken" has an
// error.
#include <cstddef>
#include <cstring>
#include <string>

namespace {

struct Given {
  std::string given, log;
};

Given* of(void* program) { return static_cast<Given*>(program); }

}  // namespace

extern "C" {

int nvrtcCreateProgram(void** program, const char* source, const char* name, int headers,
                       const char* const* texts, const char* const* names) {
  auto* made = new Given;
  made->given = std::string(name) + ":\n" + source;
  for (int i = 0; i < headers; ++i) {
    made->given += std::string("header ") + names[i] + (texts[i][0] == '\0' ? ", empty\n" : "\n");
  }
  *program = made;
  return 0;
}

int nvrtcCompileProgram(void* program, int options, const char* const* words) {
  for (int i = 0; i < options; ++i) of(program)->given += std::string(words[i]) + "\n";
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
  *size = of(program)->given.size();
  return 0;
}
int nvrtcGetCUBIN(void* program, char* cubin) {
  std::memcpy(cubin, of(program)->given.data(), of(program)->given.size());
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
