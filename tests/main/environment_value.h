// A variable of the environment that has another value for a while.
#ifndef SLUICE_TESTS_MAIN_ENVIRONMENT_VALUE_H_
#define SLUICE_TESTS_MAIN_ENVIRONMENT_VALUE_H_

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

namespace sluice {

// Sets the variable, and in the end makes it what it was. Thread: the only one of the process, or
// one while no other reads the environment.
class EnvironmentValue {
 public:
  EnvironmentValue(std::string name, const std::string& value) : name_(std::move(name)) {
    if (const char* const before = std::getenv(name_.c_str())) before_ = before;
    setenv(name_.c_str(), value.c_str(), 1);
  }
  ~EnvironmentValue() {
    if (before_.has_value()) {
      setenv(name_.c_str(), before_->c_str(), 1);
    } else {
      unsetenv(name_.c_str());
    }
  }
  EnvironmentValue(const EnvironmentValue&) = delete;
  EnvironmentValue& operator=(const EnvironmentValue&) = delete;

 private:
  const std::string name_;
  std::optional<std::string> before_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_MAIN_ENVIRONMENT_VALUE_H_
