// The host device under the contract of devices.
#include "device/device.h"
#include "device/device_contract.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

INSTANTIATE_TEST_SUITE_P(Host, DeviceContract, testing::Values(&MakeHostDevice));

}  // namespace
}  // namespace sluice
