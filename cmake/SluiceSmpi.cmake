# SimGrid's simulated MPI (SMPI), where it is installed: the target sluice_smpi.
find_path(SLUICE_SMPI_INCLUDE_DIR mpi.h PATH_SUFFIXES smpi NO_CMAKE_SYSTEM_PATH
          PATHS /usr/include /usr/local/include)
find_library(SLUICE_SIMGRID_LIBRARY simgrid)
mark_as_advanced(SLUICE_SMPI_INCLUDE_DIR SLUICE_SIMGRID_LIBRARY)
if(SLUICE_SMPI_INCLUDE_DIR AND SLUICE_SIMGRID_LIBRARY)
  add_library(sluice_smpi INTERFACE)
  target_include_directories(sluice_smpi SYSTEM INTERFACE ${SLUICE_SMPI_INCLUDE_DIR})
  target_link_libraries(sluice_smpi INTERFACE ${SLUICE_SIMGRID_LIBRARY})
elseif(SLUICE_SMPI)
  message(FATAL_ERROR "SLUICE_SMPI takes SimGrid with SMPI (Debian: libsimgrid-dev)")
endif()
