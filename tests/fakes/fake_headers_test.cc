// The fakes' headers declare what the vendors' do, wherever those are installed.
#include "fakes/fake_values.h"
#include "gmock/gmock.h"

namespace sluice {
namespace {

TEST(FakeHeadersTest, ValuesAndTypesAreTheVendors) {
  EXPECT_GT(FakeValues().size(), 200u);
  EXPECT_THAT(FakeValues(), testing::ContainerEq(VendorValues()));
}

}  // namespace
}  // namespace sluice
