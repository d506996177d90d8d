// What the library says of the MPI that it runs over: nothing, since it has told this MPI what it
// needs. Where the user has told this MPI something else that will not do, the library says so.
// Ranks alone have no shared memory.
//
// usage: mpi_lacks_test [limited]
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/match.h"
#include "transport/mpi_needs.h"

int main(int argc, char** argv) {
  const bool limited = argc > 1;
  constexpr char kLimit[] = "OMPI_MCA_btl_sm_free_list_max";
  if (limited) setenv(kLimit, "512", 1);
  MPI_Init(&argc, &argv);
  const std::string lacks = sluice::WhatMpiLacks();
  bool right = lacks.empty();
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION == 5 && OMPI_MINOR_VERSION == 0 && \
    OMPI_RELEASE_VERSION < 11
  if (limited) right = absl::StrContains(lacks, "its 512 ") && absl::StrContains(lacks, kLimit);
#endif
  if (!right) std::fprintf(stderr, "failed: it said \"%s\"\n", lacks.c_str());
  MPI_Finalize();
  return right ? 0 : 1;
}
