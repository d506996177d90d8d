// The texts of the headers that are found first: compiled once with the fakes', once with the
// vendors', as the function that SLUICE_VALUES names.
#include <cuda_runtime.h>
#include <nccl.h>

#include <cstddef>
#include <map>
#include <string>
#include <typeinfo>

namespace sluice {

std::map<std::string, std::string> SLUICE_VALUES();

std::map<std::string, std::string> SLUICE_VALUES() {
  std::map<std::string, std::string> values;
#define VALUE(of) values[#of] = std::to_string(static_cast<long long>(of));
#define FUNCTION(of) values[#of] = typeid(decltype(of)).name();
#define FIELD(in, of) values[#in "::" #of] = typeid(decltype(in::of)).name();
#include "fakes/fake_values.inc"
#undef VALUE
#undef FUNCTION
#undef FIELD
  // It has overloads.
  [[maybe_unused]] cudaError_t (*const allocate)(void**, size_t) = cudaMalloc;
  const ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  values["size"] = std::to_string(config.size);
  values["magic"] = std::to_string(config.magic);
  values["version"] = std::to_string(config.version);
  values["trafficClass"] = std::to_string(config.trafficClass);
  values["nvlinkCentricSched"] = std::to_string(config.nvlinkCentricSched);
  return values;
}

}  // namespace sluice
