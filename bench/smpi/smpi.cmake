# Programs for smpirun, which loads programs as libraries. What the operating system would say of
# time, memory and hosts comes from the simulation.
#
# sluice_smpi_program(NAME SOURCES file... DEPS target... [WRAPS function...])
#   WRAPS: what its own sources stand in for, beside what the simulation does.
function(sluice_smpi_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;WRAPS" ${ARGN})
  add_library(${name} MODULE ${ARG_SOURCES} smpi/folded_memory.cc smpi/simulated_mpi.cc
                             smpi/simulated_time.cc)
  set_target_properties(${name} PROPERTIES
    PREFIX "" SUFFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}
                                             ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} sluice_smpi)
  foreach(function sched_yield nanosleep ppoll clock_gettime mmap aligned_alloc free
          MPI_Comm_idup MPI_Get_processor_name MPI_Query_thread MPI_Improbe MPI_Imrecv
          MPI_Test _ZNSt6chrono3_V212steady_clock3nowEv
          _ZN6sluice5bench14AvailableBytesEv _ZN6sluice5bench18ReadResidentMemoryEv ${ARG_WRAPS})
    target_link_options(${name} PRIVATE -Wl,--wrap=${function})
  endforeach()
  sluice_flags(${name} library)
endfunction()

if(SLUICE_SMPI)
  sluice_smpi_program(sluice-bench-smpi SOURCES sluice_bench.cc gpu/cuda_gpu.cc
                                        DEPS sluice_bench_with_mpi)
  target_compile_definitions(sluice-bench-smpi PRIVATE SLUICE_ACCELERATORS="SimGrid's SMPI")
endif()

# Small enough for every tree with MPI, so that a test runs it: what needs MPI is compiled anew.
if(SLUICE_HAVE_MPI OR SLUICE_SMPI)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/transport/mpi/*.cc)
  sluice_smpi_program(sluice-smpi-messages SOURCES smpi/message_counts.cc ${sources}
                                           DEPS sluice::sluice absl::strings
                                           WRAPS MPI_Isend MPI_Issend)
endif()
