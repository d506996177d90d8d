// What MPI and its launcher say, without MPI's tool interface: starting that lowers the thread
// level that MPI has given.
#include <link.h>
#include <mpi.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "doctor/look_system.h"
#include "transport/environment_variable.h"
#include "transport/mpi/mpi_needs.h"

namespace sluice::bench {

std::string MpiVersion() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string version(text, static_cast<size_t>(length));
  return version.substr(0, version.find_first_of(",\n"));
}

namespace {

int Number(const char* name) {
  int number = 0;
  return absl::SimpleAtoi(EnvironmentVariable(name), &number) ? number : 0;
}

using Components = std::map<std::string, std::set<std::string>>;

// Of ".../mca_btl_vader.so".
int AddComponent(dl_phdr_info* info, size_t /*bytes*/, void* components) {
  absl::string_view name = info->dlpi_name == nullptr ? "" : info->dlpi_name;
  name.remove_prefix(std::min(name.size(), name.rfind('/') + 1));
  for (const absl::string_view kind : {"pml", "mtl", "btl"}) {
    const std::string start = absl::StrCat("mca_", kind, "_");
    const size_t end = name.find(".so");
    if (name.substr(0, start.size()) != start || end == absl::string_view::npos) continue;
    (*static_cast<Components*>(components))[std::string(kind)].emplace(
        name.substr(start.size(), end - start.size()));
  }
  return 0;
}

// Components that Open MPI has loaded and not dropped again: "btl self tcp vader, pml ob1". Empty
// where they are parts of its library.
std::string LoadedComponents() {
  Components components;
  dl_iterate_phdr(&AddComponent, &components);
  return absl::StrJoin(components, ", ", [](std::string* out, const auto& kind) {
    absl::StrAppend(out, kind.first, " ", absl::StrJoin(kind.second, " "));
  });
}

}  // namespace

MpiFacts LookAtMpi() {
  MpiFacts facts;
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  facts.has_all_threads = level >= MPI_THREAD_MULTIPLE;
  facts.thread_level = level >= MPI_THREAD_MULTIPLE     ? "MPI_THREAD_MULTIPLE"
                       : level >= MPI_THREAD_SERIALIZED ? "MPI_THREAD_SERIALIZED"
                       : level >= MPI_THREAD_FUNNELED   ? "MPI_THREAD_FUNNELED"
                                                        : "MPI_THREAD_SINGLE";
  facts.lacks = WhatMpiLacks();
  facts.components = LoadedComponents();
  facts.btl = EnvironmentVariable("OMPI_MCA_btl");
  facts.single_copy = EnvironmentVariable("OMPI_MCA_btl_vader_single_copy_mechanism");
  facts.yield_when_idle = EnvironmentVariable("OMPI_MCA_mpi_yield_when_idle");
  facts.oversubscribed = EnvironmentVariable("OMPI_MCA_mpi_oversubscribe");
  facts.launched = std::max(
      {Number("OMPI_COMM_WORLD_SIZE"), Number("PMI_SIZE"), Number("SLURM_STEP_NUM_TASKS")});
  return facts;
}

}  // namespace sluice::bench
