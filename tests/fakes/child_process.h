// Runs single tests of this program in processes of their own, which find what they need in an
// environment variable.
#ifndef SLUICE_TESTS_FAKES_CHILD_PROCESS_H_
#define SLUICE_TESTS_FAKES_CHILD_PROCESS_H_

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>

namespace sluice {

// The exit status, as std::system gives it. `values` is copied as it lies in memory. What one that
// is to fail says is not shown.
template <class Values>
int RunChild(const std::string& test, const Values& values, bool is_to_fail = false) {
  std::array<unsigned char, sizeof(values)> bytes;
  std::memcpy(bytes.data(), &values, sizeof(values));
  std::string text;
  for (const unsigned char byte : bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    text += {kDigits[byte / 16], kDigits[byte % 16]};
  }
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = "FAKES_TEST_CHILD=" + text + " " + program +
                              " --gtest_also_run_disabled_tests --gtest_filter=" + test +
                              (is_to_fail ? " >/dev/null 2>&1" : " >&2");
  return std::system(command.c_str());
}

// What the parent gave; nothing in the parent itself.
template <class Values>
std::optional<Values> FromParent() {
  const char* const text = std::getenv("FAKES_TEST_CHILD");
  if (text == nullptr) return std::nullopt;
  const std::string hex = text;
  std::array<unsigned char, sizeof(Values)> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<unsigned char>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  }
  Values values;
  std::memcpy(&values, bytes.data(), sizeof(values));
  return values;
}

}  // namespace sluice

#endif  // SLUICE_TESTS_FAKES_CHILD_PROCESS_H_
