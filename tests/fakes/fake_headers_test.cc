// The fakes' headers declare what the vendors' do, wherever those are installed.
#include <map>
#include <string>

#include "gmock/gmock.h"

namespace sluice {

// By name: the number of each enumerator and macro, the type of each function and field.
std::map<std::string, std::string> FakeValues();
std::map<std::string, std::string> VendorValues();

namespace {

TEST(FakeHeadersTest, ValuesAndTypesAreTheVendors) {
  EXPECT_GT(FakeValues().size(), 200u);
  EXPECT_THAT(FakeValues(), testing::ContainerEq(VendorValues()));
}

}  // namespace
}  // namespace sluice
