// What the fakes' headers share with the vendors', as texts that a test compares.
#ifndef SLUICE_TESTS_FAKES_FAKE_VALUES_H_
#define SLUICE_TESTS_FAKES_FAKE_VALUES_H_

#include <map>
#include <string>

namespace sluice {

// By name: the number of each enumerator and macro, the type of each function and field.
std::map<std::string, std::string> FakeValues();
std::map<std::string, std::string> VendorValues();

}  // namespace sluice

#endif  // SLUICE_TESTS_FAKES_FAKE_VALUES_H_
