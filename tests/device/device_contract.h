// What every device must do, as tests over the seam alone.
//
// A device's test file gives a maker: INSTANTIATE_TEST_SUITE_P(Host, DeviceContract,
// testing::Values(&MakeHostDevice)). Batches need not be complete when Start returns.
#ifndef SLUICE_TESTS_DEVICE_DEVICE_CONTRACT_H_
#define SLUICE_TESTS_DEVICE_DEVICE_CONTRACT_H_

#include <memory>

#include "device/device.h"
#include "gtest/gtest.h"

namespace sluice {

class DeviceContract : public testing::TestWithParam<std::unique_ptr<Device> (*)()> {
 protected:
  std::unique_ptr<Device> device_ = GetParam()();
};

}  // namespace sluice

#endif  // SLUICE_TESTS_DEVICE_DEVICE_CONTRACT_H_
