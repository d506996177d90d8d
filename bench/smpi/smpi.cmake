# sluice-bench for smpirun, which loads programs as libraries. What the operating system would say
# of time, memory and hosts comes from the simulation.
add_library(sluice-bench-smpi MODULE
  sluice_bench.cc
  gpu/cuda_gpu.cc
  smpi/folded_memory.cc
  smpi/simulated_mpi.cc
  smpi/simulated_time.cc)
set_target_properties(sluice-bench-smpi PROPERTIES
  PREFIX "" SUFFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
target_compile_definitions(sluice-bench-smpi PRIVATE SLUICE_ACCELERATORS="SimGrid's SMPI")
target_link_libraries(sluice-bench-smpi PRIVATE sluice_bench_with_mpi)
foreach(function sched_yield nanosleep ppoll clock_gettime mmap aligned_alloc free
        MPI_Comm_idup MPI_Get_processor_name MPI_Query_thread
        MPI_Test _ZNSt6chrono3_V212steady_clock3nowEv
        _ZN6sluice5bench14AvailableBytesEv _ZN6sluice5bench18ReadResidentMemoryEv)
  target_link_options(sluice-bench-smpi PRIVATE -Wl,--wrap=${function})
endforeach()
sluice_flags(sluice-bench-smpi library)
