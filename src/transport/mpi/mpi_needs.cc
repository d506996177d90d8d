// The number of fragments of Open MPI's shared memory: set in the environment before MPI reads it.
#include "transport/mpi/mpi_needs.h"

#include <mpi.h>

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION == 5 && OMPI_MINOR_VERSION == 0 && \
    OMPI_RELEASE_VERSION < 11
#define SLUICE_MPI_KEEPS_ACKNOWLEDGEMENTS_BACK 1
#endif

namespace sluice {

#ifdef SLUICE_MPI_KEEPS_ACKNOWLEDGEMENTS_BACK

namespace {

constexpr char kName[] = "OMPI_MCA_btl_sm_free_list_max";
constexpr int kDefault = 512;  // of Open MPI 5.0

// MPI_Init reads the environment, and programs call it before they call this library. True where
// even the loading of this library comes after it.
bool SetBeforeMpiReadsIt() {
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (initialized != 0 && std::getenv(kName) == nullptr) return false;
  setenv(kName, "-1", 0);
  return true;
}
const bool kInTime = SetBeforeMpiReadsIt();

// The limit that MPI found in the environment. MPI's own interface for such values (MPI_T) is no
// way to ask. Its initialization lowers the thread level that MPI gives the program, and with it
// MPI's locks (https://github.com/open-mpi/ompi/pull/14164).
int Limit() {
  const char* const text = std::getenv(kName);
  int limit = kDefault;
  if (!kInTime || text == nullptr || !absl::SimpleAtoi(text, &limit)) return kDefault;
  return limit;
}

}  // namespace

std::string WhatMpiLacks() {
  constexpr int kEnough = 4096;  // for as many messages that a rank has not been told of
  const int limit = Limit();
  if (limit < 0 || limit >= kEnough) return "";
  return absl::StrCat("ranks of a node may stand still: this Open MPI loses acknowledgements when ",
                      "its ", limit, " shared-memory fragments are in use. ",
                      "Set OMPI_MCA_btl_sm_free_list_max=-1 before MPI_Init.");
}

#else

std::string WhatMpiLacks() { return ""; }

#endif

}  // namespace sluice
