// Names against real drivers: what cuGetProcAddress answered on 12.2 (535.309.01), what 13.0 exports.
#include <fstream>
#include <sstream>

#include "driver.hpp"

namespace {

// The symbol that was resolved, by its address; "-" for none.
std::string resolve(const std::string& name, int version, unsigned long long flags,
                    const std::string& expected, int* status) {
  void* address = nullptr;
  CUdriverProcAddressQueryResult found{};
  REQUIRE(CU(cuGetProcAddress_v2)(name.c_str(), &address, version, flags, &found) == CUDA_SUCCESS);
  *status = static_cast<int>(found);
  if (!address) return "-";
  return expected != "-" && address == dlsym(library(), expected.c_str()) ? expected : "another symbol";
}

// Names of the 12.2 table that are not to be found here; null for all others.
const char* why_gone(const std::string& name) {
  struct Gone {
    const char* prefix;
    const char* reason;
  };
  static const Gone gone[] = {
      {"cudbg", "the debugger's private interface, in no header"},
      {"cuEGL", "EGL interoperation: cudaEGL.h, not part of the driver API of cuda.h"},
      {"cuGL", "OpenGL interoperation: cudaGL.h, not part of the driver API of cuda.h"},
      {"cuVDPAU", "VDPAU interoperation: cudaVDPAU.h, not part of the driver API of cuda.h"},
      {"cuGraphicsEGL", "EGL interoperation"},
      {"cuGraphicsResourceGetMappedEglFrame", "EGL interoperation"},
      {"cuGraphicsGL", "OpenGL interoperation"},
      {"cuGraphicsVDPAU", "VDPAU interoperation"},
      {"cuMemGetAttribute", "in no header of 13.0; 12.2 had it without a declaration"},
  };
  for (const Gone& entry : gone)
    if (name.rfind(entry.prefix, 0) == 0) return entry.reason;
  return nullptr;
}

}  // namespace

TEST_CASE("resolution agrees with every row that a real driver of 12.2 answered") {
  std::ifstream file(SIM_TEST_DATA "/resolution-12.2.tsv");
  REQUIRE(file);
  std::string line;
  int rows = 0, gone = 0;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    std::string name, symbol;
    int flags = 0, version = 0, result = 0, status = 0, seen = -1;
    fields >> name >> flags >> version >> result >> status >> symbol;
    INFO(line);
    if (const char* reason = why_gone(name)) {
      INFO("not compared: " << reason);
      resolve(name, version, static_cast<unsigned>(flags), symbol, &seen);
      CHECK(seen == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
      ++gone;
      continue;
    }
    CHECK(resolve(name, version, static_cast<unsigned>(flags), symbol, &seen) == symbol);
    CHECK(seen == status);
    ++rows;
  }
  CHECK(rows == 2577);
  CHECK(gone == 265);
}

TEST_CASE("a suffixed name and one that no driver has are not found") {
  const std::string name = GENERATE("cuMemAlloc_v2", "cuNoSuchEntry");
  int status = -1;
  CHECK(resolve(name, 12000, 0, "-", &status) == "-");
  CHECK(status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

TEST_CASE("every name that a driver of 13.0 exports is exported") {
  std::ifstream file(SIM_TEST_DATA "/exports-13.0.txt");
  REQUIRE(file);
  std::string name;
  int names = 0;
  for (; file >> name; ++names) CHECK(symbol(name.c_str()) != nullptr);
  CHECK(names == 637);
}

TEST_CASE("flags that exclude each other are an invalid value") {
  void* address = nullptr;
  CHECK(CU(cuGetProcAddress_v2)("cuInit", &address, 12000, 3, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGetProcAddress_v2)("cuInit", &address, 12000, 4, nullptr) == CUDA_ERROR_INVALID_VALUE);
}
