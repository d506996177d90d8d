// The number of fragments of Open MPI's shared memory: set before MPI reads it, and read back.
#include "transport/mpi_needs.h"

#include <mpi.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION == 5 && OMPI_MINOR_VERSION == 0 && \
    OMPI_RELEASE_VERSION < 11
#define SLUICE_MPI_KEEPS_ACKNOWLEDGEMENTS_BACK 1
#endif

namespace sluice {

#ifdef SLUICE_MPI_KEEPS_ACKNOWLEDGEMENTS_BACK

namespace {

constexpr char kLimit[] = "btl_sm_free_list_max";

// MPI_Init reads the environment, and programs call it before they call this library.
[[maybe_unused]] const int kSet = setenv("OMPI_MCA_btl_sm_free_list_max", "-1", 0);

// As MPI has it; -1 where there is none: no limit, or no such transport.
int Limit() {
  int level = MPI_THREAD_SINGLE;
  if (MPI_T_init_thread(MPI_THREAD_SINGLE, &level) != MPI_SUCCESS) return -1;
  int limit = -1;
  int index = 0;
  int count = 0;
  MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
  if (MPI_T_cvar_get_index(kLimit, &index) == MPI_SUCCESS &&
      MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) == MPI_SUCCESS) {
    int value = 0;
    if (count == 1 && MPI_T_cvar_read(handle, &value) == MPI_SUCCESS) limit = value;
    MPI_T_cvar_handle_free(&handle);
  }
  MPI_T_finalize();
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
