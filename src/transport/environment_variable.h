// A variable of the environment as text.
#ifndef SLUICE_SRC_TRANSPORT_ENVIRONMENT_VARIABLE_H_
#define SLUICE_SRC_TRANSPORT_ENVIRONMENT_VARIABLE_H_

#include <cstdlib>
#include <string>

namespace sluice {

// "": it is not set. Programs that set variables do so before they have threads.
inline std::string EnvironmentVariable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_ENVIRONMENT_VARIABLE_H_
