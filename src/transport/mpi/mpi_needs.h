// Settings that this MPI needs, so that a fault that it is known to have does not occur.
#ifndef SLUICE_SRC_TRANSPORT_MPI_MPI_NEEDS_H_
#define SLUICE_SRC_TRANSPORT_MPI_MPI_NEEDS_H_

#include <string>

namespace sluice {

// Open MPI 5.0.0 to 5.0.10 may keep acknowledgements back for ever. An acknowledgement may find all
// fragments of the shared memory in use. It is then tried again when another message of its own
// completes, and there may be none. (https://github.com/open-mpi/ompi/issues/12979 is mended in
// 5.0.11.) Its sender then waits for ever. So there must be fragments enough: when this library is
// loaded, it sets OMPI_MCA_btl_sm_free_list_max to -1, unless the environment has a value.
//
// This function returns a line for the user, where MPI has too few fragments. Then the environment
// asks for so few, or MPI was initialized before this library was loaded. The line is empty
// otherwise. Nothing of MPI is called. Thread: any, as long as none changes the environment.
std::string WhatMpiLacks();

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_MPI_MPI_NEEDS_H_
