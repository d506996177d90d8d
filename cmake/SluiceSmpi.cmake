# SimGrid's simulated MPI (SMPI) in the place of a real one: the target MPI::MPI_CXX.
find_path(SLUICE_SMPI_INCLUDE_DIR mpi.h PATH_SUFFIXES smpi NO_CMAKE_SYSTEM_PATH
          PATHS /usr/include /usr/local/include)
find_library(SLUICE_SIMGRID_LIBRARY simgrid)
mark_as_advanced(SLUICE_SMPI_INCLUDE_DIR SLUICE_SIMGRID_LIBRARY)
if(NOT SLUICE_SMPI_INCLUDE_DIR OR NOT SLUICE_SIMGRID_LIBRARY)
  message(FATAL_ERROR "SLUICE_SMPI takes SimGrid with SMPI (Debian: libsimgrid-dev)")
endif()
add_library(MPI::MPI_CXX INTERFACE IMPORTED)
target_include_directories(MPI::MPI_CXX SYSTEM INTERFACE ${SLUICE_SMPI_INCLUDE_DIR})
target_link_libraries(MPI::MPI_CXX INTERFACE ${SLUICE_SIMGRID_LIBRARY})
