// Reads the options of a world from the environment that launchers leave.
#ifndef SLUICE_SRC_WORLD_ENVIRONMENT_H_
#define SLUICE_SRC_WORLD_ENVIRONMENT_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "sluice/world.h"

namespace sluice {

// The value of a variable; "": it is not set. As getenv, and for tests anything.
using EnvironmentFunction = absl::FunctionRef<std::string(const char* name)>;

absl::StatusOr<WorldOptions> WorldOptionsFrom(EnvironmentFunction environment);
bool HasWorld(EnvironmentFunction environment);

// The first host of Slurm's short form: "node007" of "node[007-009,12],other3".
std::string FirstOfNodeList(absl::string_view list);

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_ENVIRONMENT_H_
