// One look into sysfs.
#include "transport/ucx/rdma_device.h"

#include <filesystem>
#include <system_error>

namespace sluice {

bool HasRdmaDevice() {
  std::error_code error;
  const std::filesystem::directory_iterator devices("/sys/class/infiniband", error);
  return !error && devices != std::filesystem::directory_iterator();
}

}  // namespace sluice
