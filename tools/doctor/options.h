// The flags of `sluice-bench doctor`: their names are an interface.
#ifndef SLUICE_TOOLS_DOCTOR_OPTIONS_H_
#define SLUICE_TOOLS_DOCTOR_OPTIONS_H_

#include <string>

#include "absl/time/time.h"

namespace CLI {
class App;
}

namespace sluice::bench {

struct DoctorOptions {
  int ranks_per_node = 0;       // 0: by host (Job::MakeFabric)
  std::string fabric = "auto";  // as AddFabric
  double timeout_s = 30;
  bool strict = false;
  std::string json_file;

  absl::Duration timeout() const { return absl::Seconds(timeout_s); }
};

// Gives `app` the flags, which write to `options`; `options` must live as long as `app` is used.
void AddDoctorFlags(CLI::App* app, DoctorOptions* options);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_DOCTOR_OPTIONS_H_
