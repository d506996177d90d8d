// Runs a suite once for each instruction set that this machine has and the library was built for.
#ifndef SLUICE_TESTS_DEVICE_EACH_TARGET_H_
#define SLUICE_TESTS_DEVICE_EACH_TARGET_H_

#include <hwy/targets.h>

#include <cstdint>
#include <string>

#include "gtest/gtest.h"

namespace sluice {

class EachTarget : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

inline auto AllTargets() { return testing::ValuesIn(hwy::SupportedAndGeneratedTargets()); }

inline std::string TargetNameOf(const testing::TestParamInfo<int64_t>& info) {
  return hwy::TargetName(info.param);
}

}  // namespace sluice

#endif  // SLUICE_TESTS_DEVICE_EACH_TARGET_H_
