// Baselines by name.
#include "reshard/baselines/baseline.h"

namespace sluice::bench {
namespace {

struct Entry {
  const char* name;
  std::unique_ptr<Baseline> (*make)();
};

constexpr Entry kEntries[] = {{"serial", &MakeSerialBaseline},
                              {"isend", &MakeIsendBaseline},
                              {"isend-packed", &MakeIsendPackedBaseline},
                              {"alltoallw", &MakeAlltoallwBaseline},
                              {"gather-broadcast", &MakeGatherBroadcastBaseline},
                              {"mpi-collective", &MakeMpiCollectiveBaseline},
                              {"memcpy-own", &MakeMemcpyOwnBaseline},
                              {"bound", &MakeBoundBaseline},
                              {"memcpy", &MakeMemcpyOwnBaseline}};  // its old name

}  // namespace

std::vector<std::string> BaselineNames() {
  std::vector<std::string> names;
  for (const Entry& entry : kEntries) names.emplace_back(entry.name);
  return names;
}

std::unique_ptr<Baseline> MakeBaseline(absl::string_view name) {
  for (const Entry& entry : kEntries) {
    if (name == entry.name) return entry.make();
  }
  return nullptr;
}

}  // namespace sluice::bench
