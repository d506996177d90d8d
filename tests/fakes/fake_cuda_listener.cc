// Linked into a test program, fails every test that misuses the fake CUDA runtime or leaves
// something behind.
#include <string>

#include "fakes/fake_cuda.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

class FakeCudaListener : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo&) override {
    for (const std::string& what : FakeCudaCheckClean()) ADD_FAILURE() << "fake CUDA: " << what;
  }
};

[[maybe_unused]] const bool kListens = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new FakeCudaListener);
  return true;
}();

}  // namespace
}  // namespace sluice
