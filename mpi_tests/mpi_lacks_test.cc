// What the library says of the MPI that it runs over: nothing, since it has told this MPI what it
// needs. The library says so where this MPI was told something else, or could not be told in time.
// Asking leaves MPI as it is. Ranks alone have no shared memory.
//
// usage: mpi_lacks_test [limited|late]
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/match.h"
#include "transport/mpi/mpi_needs.h"

namespace {

constexpr char kName[] = "OMPI_MCA_btl_sm_free_list_max";

bool Is(int argc, char** argv, const char* mode) {
  return argc > 1 && std::strcmp(argv[1], mode) == 0;
}

void InitializeMpi() {
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
}

// Runs before the library's own code that runs when it is loaded.
__attribute__((constructor(101))) void BeforeTheLibrary(int argc, char** argv, char** /*all*/) {
  if (Is(argc, argv, "late")) InitializeMpi();
}

int Level() {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  return level;
}

}  // namespace

int main(int argc, char** argv) {
  const bool limited = Is(argc, argv, "limited");
  const bool late = Is(argc, argv, "late");
  if (limited) setenv(kName, "512", 1);
  if (!late) InitializeMpi();
  const int level = Level();
  const std::string lacks = sluice::WhatMpiLacks();
  bool right = lacks.empty();
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION == 5 && OMPI_MINOR_VERSION == 0 && \
    OMPI_RELEASE_VERSION < 11
  if (limited || late) {
    right = absl::StrContains(lacks, "its 512 ") && absl::StrContains(lacks, kName);
  }
#endif
  if (!right) std::fprintf(stderr, "failed: it said \"%s\"\n", lacks.c_str());
  if (Level() != level) {
    std::fprintf(stderr, "failed: the thread level was %d, and is %d\n", level, Level());
    right = false;
  }
  MPI_Finalize();
  return right ? 0 : 1;
}
